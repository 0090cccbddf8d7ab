"""Trains a bi-, poly- or cross-encoder from pairs to a finished folder: ONNX, tokenizer, manifest, card, checkpoint."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from capr.documents import CaprError
from capr.models.bi import BiEncoder, Side
from capr.models.cross import CrossEncoder, Pair
from capr.models.layers import cut, cut_inside
from capr.models.long import LongEncoder
from capr.models.poly import PolyEncoder, Query, Tokens
from capr.search.models import shipped
from capr.train import card, from_onnx
from capr.train.bases import MARKERS, Reader, add_markers, load_classifier, load_encoder, load_tokenizer
from capr.train.export import Exported, export
from capr.train.loop import Report, Schedule, fit
from capr.train.objectives import BiObjective, CrossObjective, List, Objective, PolyObjective, Reading, validated
from capr.train.pairs import Pairs

FEWEST = 8  # passages to train on
LISTS = 500  # queries to validate with
CHECKED = 50  # of them, each of 24 passages, to compare what was exported with torch
CHECKPOINT = "torch"


@dataclass(frozen=True)
class Recipe:
    """What to train, besides how long and how texts are read.

    Attributes:
        kind: `bi`, `poly` or `cross`.
        base: a Hugging Face encoder, by path or name; a folder that was trained here, to go on with it; `encoder` or
            `ranker`, those that ship.
        layers: how many to keep; 0 for all.
        shared: whether queries and passages have one encoder.
        markers: whether `[QUERY]` and `[PASSAGE]` tell the two apart.
        pooling: of a bi-encoder: `cls` or `mean`.
        similarity: `cosine` or `dot`.
        temperature: by which scores are divided.
        dimensions: nested sizes of a bi-encoder's vectors; the largest is all of them.
        project, scaled, codes: of a poly-encoder.
        teachers: cross-encoders that were trained here, whose rankings are learned as well.
        hard: how much what is known to answer counts beside a teacher's opinion.
        blend: share of the base's weights in those of the trained model, which keeps what the base could do before.
        context: whether passages are read with what stands around them, which a Longformer can.
        validation: share of the documents to validate on.
        name: of the model.
        licence: of the documents.
    """

    kind: str
    base: str
    layers: int = 0
    shared: bool = True
    markers: bool = False
    pooling: str = "cls"
    similarity: str = "cosine"
    temperature: float = 0.03
    dimensions: tuple[int, ...] = ()
    project: bool = True
    scaled: bool = False
    codes: int = 0
    teachers: tuple[str, ...] = ()
    hard: float = 0.3
    blend: float = 0.0
    context: bool = False
    validation: float = 0.05
    name: str = ""
    licence: str = ""


def train(
    pairs: Pairs,
    recipe: Recipe,
    reading: Reading,
    schedule: Schedule,
    out: Path,
    resume: bool = False,
    progress: Callable[[Report], None] = lambda report: None,
    onnx: bool = True,
) -> dict[str, float]:
    """Trains, validates, exports and describes a model; gives its scores on the validation split.

    Without `onnx` it is not exported: a model to go on with, or a teacher, need not be.

    Raises:
        CaprError: there is too little to learn from, the base cannot be used, or training went wrong.
    """
    learn, held = pairs.split(recipe.validation, schedule.seed)
    if len(learn.passages) < FEWEST or not held.draws:
        fact = f"there are {len(learn.passages)} passages to train on and {len(held.draws)} queries to validate with"
        fix = "name more documents that have headings and entities (capr supervise shows what they have)"
        raise CaprError(f"{fact}, which is too few. Fix: {fix}.")
    lists = list(held.lists(64, LISTS, schedule.seed))
    torch.manual_seed(schedule.seed)
    objective = build(learn, recipe, reading, schedule.device)
    batch = min(schedule.batch, len(learn.by_passage()))
    schedule = replace(schedule, batch=batch)
    if not resume:
        for old in ("checkpoint.pt", "projection.npy", *(path.name for path in out.glob("*.onnx"))):
            (out / old).unlink(missing_ok=True)  # of another model that was trained here
    begun = copy.deepcopy(objective.model.state_dict()) if recipe.blend else {}
    scores = fit(objective, schedule, (held, lists), out, resume, progress)
    if recipe.blend:
        blend(objective.model, begun, recipe.blend)
        scores = validated(objective, held, lists)
    if int(os.environ.get("RANK", 0)):
        return scores  # the first process writes the model
    tokenizer = objective.reader.tokenizer
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    keep(objective, recipe, out)
    write_manifest(objective, recipe, out)
    checked = {}
    if onnx and not recipe.context:  # ONNX cannot express how a Longformer pads, so torch alone runs it
        export_networks(objective, recipe, out)
        some = [(query, candidates[:24], answers) for query, candidates, answers in lists[:CHECKED]]
        checked = check(objective, out, held, some)
    data = {
        "documents": len({text.document for text in pairs.passages}), "passages": len(pairs.passages),
        "draws": len(pairs.draws), "validation queries": len(lists),
    }  # fmt: skip
    settings = {**asdict(recipe), **asdict(objective.reading), **asdict(schedule)}
    settings["base"] = Path(recipe.base).name
    settings["teachers"] = [Path(teacher).name for teacher in recipe.teachers]
    card.write(out, recipe.name or out.name, f"{recipe.kind}-encoder", data, recipe.licence, settings, scores | checked)
    (out / "checkpoint.pt").unlink(missing_ok=True)
    return scores | checked


def blend(model: Module, others: Mapping[str, Tensor], share: float) -> None:
    """Moves the weights of a model by a share of the way to others.

    Reference: Wortsman et al., Robust fine-tuning of zero-shot models (WiSE-FT), 2022.
    """
    mine = model.state_dict()
    model.load_state_dict({
        name: torch.lerp(weight, others[name].to(weight), share) if weight.is_floating_point() else weight
        for name, weight in mine.items()
    })  # fmt: skip


def build(pairs: Pairs, recipe: Recipe, reading: Reading, device: str) -> Objective:
    """The model of a recipe and what it learns from."""
    base = _base(recipe)
    tokenizer = load_tokenizer(base)
    if recipe.kind == "cross":
        classifier = load_classifier(base)
        if recipe.layers:
            cut_inside(classifier, recipe.layers)
        reader = Reader(tokenizer, classifier, device)
        teachers = [load_teacher(teacher, device) for teacher in recipe.teachers]
        return CrossObjective(CrossEncoder(classifier), pairs, reader, reading, teachers, recipe.hard)
    encoder = load_encoder(base)
    if recipe.layers:
        encoder = cut(encoder, recipe.layers)
    if recipe.markers:
        add_markers(encoder, tokenizer)
        reading = replace(reading, query=MARKERS[0], passage=MARKERS[1])
    reader = Reader(tokenizer, encoder, device)
    if recipe.context:
        if getattr(encoder.config, "model_type", "") != "longformer":
            fix = "take a Longformer for --base, or leave out --context"
            raise CaprError(f"{recipe.base} cannot read a passage in its context. Fix: {fix}.")
        encoder = LongEncoder(encoder, around=recipe.kind == "poly")
        reading = replace(reading, context=True)
    if recipe.kind == "poly":
        options = (recipe.project, recipe.scaled, recipe.codes, recipe.similarity, recipe.temperature)
        poly = PolyEncoder(encoder, recipe.shared, *options)
        _go_on(poly, Path(base), recipe)
        return PolyObjective(poly, pairs, reader, reading)
    model = BiEncoder(encoder, recipe.shared, recipe.pooling, recipe.similarity, recipe.temperature)
    _go_on(model, Path(base), recipe)
    teacher = load_teacher(recipe.teachers[0], device) if recipe.teachers else None
    return BiObjective(model, pairs, reader, reading, recipe.dimensions, teacher)


def _base(recipe: Recipe) -> str:
    """Where the weights of a base lie."""
    folder = Path(recipe.base)
    if recipe.base in ("encoder", "ranker") and not folder.is_dir():
        folder = shipped(recipe.base)
    elif not folder.is_dir():
        return recipe.base
    if (folder / CHECKPOINT).is_dir():
        return str(folder / CHECKPOINT)
    if from_onnx.is_exported(folder) and (folder / "query.onnx").is_file():
        fix = f"train it again, and keep the folder {CHECKPOINT}"
        raise CaprError(f"{folder} has its two networks in ONNX alone, which is not enough. Fix: {fix}.")
    return str(folder)


def _go_on(model: BiEncoder | PolyEncoder, base: Path, recipe: Recipe) -> None:
    """Gives a model what else a base that was trained here has: an encoder of queries, an attention."""
    if not recipe.shared and (base / "query").is_dir():
        state = load_encoder(str(base / "query")).state_dict()
        inner = _inner(model.query_encoder)
        inner.load_state_dict(state, strict=False)
    if isinstance(model, PolyEncoder) and (base / "poly.pt").is_file():
        kept = torch.load(base / "poly.pt", map_location="cpu", weights_only=True)
        mine = model.state_dict()
        same = {name: value for name, value in kept.items() if name in mine and mine[name].shape == value.shape}
        model.load_state_dict(same, strict=False)


def load_teacher(folder: str, device: str) -> CrossObjective:
    """A cross-encoder that was trained here."""
    kept = Path(folder) / CHECKPOINT
    if not kept.is_dir():
        kept = Path(folder)
    if not (kept / "config.json").is_file() or not (Path(folder) / "manifest.json").is_file():
        fix = "name the folder of a ranker that capr train cross has made"
        raise CaprError(f"{folder} is no teacher: it has no {CHECKPOINT}. Fix: {fix}.")
    classifier = load_classifier(str(kept))
    reader = Reader(load_tokenizer(str(kept)), classifier, device)
    pieces = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))["pieces"]
    model = CrossEncoder(classifier).to(device).eval()
    return CrossObjective(model, Pairs([], []), reader, Reading(pieces=pieces))


def keep(objective: Objective, recipe: Recipe, out: Path) -> None:
    """Writes the weights for torch, to go on with or to teach."""
    model, kept = objective.model, out / CHECKPOINT
    shutil.rmtree(kept, ignore_errors=True)
    if isinstance(model, CrossEncoder):
        model.classifier.save_pretrained(kept)
    elif isinstance(model, BiEncoder | PolyEncoder):
        _inner(model.passage_encoder).save_pretrained(kept)
        if not recipe.shared:
            _inner(model.query_encoder).save_pretrained(kept / "query")
        if isinstance(model, PolyEncoder):
            torch.save({k: v for k, v in model.state_dict().items() if "encoder." not in k}, kept / "poly.pt")
    shutil.copy(kept / "config.json", out / "config.json")
    shutil.copy(out / "tokenizer.json", kept / "tokenizer.json")


def export_networks(objective: Objective, recipe: Recipe, out: Path) -> None:
    """Writes the weights as ONNX in 32 and 8 bits, to search with."""
    model, names = objective.model, objective.reader.names
    example = tuple(torch.ones(2, 8, dtype=torch.long) for _ in names)
    axes = {name: {0: "texts", 1: "pieces"} for name in names}
    if isinstance(model, CrossEncoder):
        export(Pair(model, names), example, axes, out)
    elif isinstance(model, BiEncoder):
        export(Side(model, model.passage_encoder, names), example, axes, out)
        if not recipe.shared:
            export(Side(model, model.query_encoder, names), example, axes, out, "query")
    elif isinstance(model, PolyEncoder):
        export(Tokens(model, names), example, axes, out)
        export(Query(model, names), example, axes, out, "query")
        if model.projection is not None:
            np.save(out / "projection.npy", model.projection.weight.detach().cpu().float().numpy())


def _inner(encoder: Any) -> Any:
    return encoder.encoder if isinstance(encoder, LongEncoder) else encoder


def write_manifest(objective: Objective, recipe: Recipe, out: Path) -> None:
    """Writes what a program must know to run the model."""
    reading = objective.reading
    manifest: dict[str, Any] = {
        "name": recipe.name or out.name,
        "kind": {"bi": "encoder", "poly": "poly", "cross": "ranker"}[recipe.kind],
        "pieces": min(reading.pieces, objective.reader.longest),
    }
    model = objective.model
    if isinstance(model, BiEncoder | PolyEncoder):
        size = model.passage_encoder.config.hidden_size
        manifest |= {"dimensions": size, "pooling": recipe.pooling, "query": reading.query, "passage": reading.passage}
        manifest["similarity"] = recipe.similarity
    if isinstance(model, PolyEncoder):
        manifest |= {"scale": model.scale, "codes": recipe.codes}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def check(objective: Objective, out: Path, pairs: Pairs, lists: Sequence[List]) -> dict[str, float]:
    """How often the exported networks put the same passage first as torch does, in 32 and in 8 bits.

    Raises:
        CaprError: in 32 bits they do not agree, so that the export is wrong.
    """
    model = objective.model.to("cpu").float().eval()
    objective.reader.device = "cpu"
    wanted = [max(range(len(scores)), key=scores.__getitem__) for scores in objective.ranked(pairs, lists, "text")]
    found = {}
    for bits, suffix in (("32 bits", ".fp32.onnx"), ("8 bits", ".onnx")):
        objective.model = Exported(model, out, suffix, objective.reader.names)
        ranked = objective.ranked(pairs, lists, "text")
        near = [max(scores) - 1e-4 * max(1.0, abs(max(scores))) for scores in ranked]  # as good as the first
        same = sum(scores[best] >= least for best, scores, least in zip(wanted, ranked, near, strict=True))
        found[f"first as torch, {bits}"] = same / len(lists)
    objective.model = model
    other = 1 - found["first as torch, 32 bits"]
    if other > 0.05:
        fact = f"the exported model puts another passage first in {other:.0%} of the lists"
        raise CaprError(f"{fact}. Fix: report it with the base's name; the torch weights are in {out / CHECKPOINT}.")
    return found
