"""Trains a discourse model (CDV) to a finished folder: network, word vectors, query spaces, manifest, card.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020;
Grundmann et al. (CAPR), section 3.4, for the language model that is fine-tuned in two stages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from capr.documents import CaprError
from capr.index import arrays
from capr.index.discourse import ENCODER, FLAGS, codes, names
from capr.index.encoder import OnnxEncoder
from capr.index.onnx import Floats
from capr.index.spaces import Encoded, Names, Space
from capr.index.subwords import Subwords
from capr.models.cdv import Cdv, Whole
from capr.train import card, cdv_spaces
from capr.train.cdv_loop import Learned, Targets, balances, encoded, features, fit, threshold
from capr.train.cdv_recipe import Recipe
from capr.train.discourses import Discourses
from capr.train.export import export_whole
from capr.train.language_model import (
    FrozenEncoder,
    LanguageModel,
    Tuned,
    check_base,
    copy_encoder,
    language_model,
    query_encoder,
)
from capr.train.loop import CHECKPOINT, Report, Schedule
from capr.train.words import train_words

FEWEST = 4  # documents to train on
WINDOW = 396  # sentences that a transformer reads together
CLOSE = 1e-3  # how far the exported network may be from torch
Told = Callable[[str, Report], None]  # of which stage
Read = Callable[[Sequence[str]], Floats]  # sentences to what the network reads of them


@dataclass(frozen=True)
class Sources:
    """What a model is made of, besides documents.

    Attributes:
        vectors: of words, that were made before; trained on the documents if there are none.
        base: an encoder that reads the sentences, instead of words.
        queries: an encoder that reads queries, for the space of that name; `base` if empty.
        descriptions: names of entities with a sentence each, from which the space of codes learns, too.
        tuning: how to train the base as well, in a second stage; not at all if None.
    """

    vectors: Subwords | None = None
    base: str = ""
    queries: str = ""
    descriptions: Sequence[tuple[Sequence[str], str]] = ()
    tuning: Schedule | None = None


def train(
    discourses: Discourses,
    recipe: Recipe,
    schedule: Schedule,
    out: Path,
    sources: Sources | None = None,
    resume: bool = False,
    told: Told = lambda stage, report: None,
) -> dict[str, float]:
    """Trains, validates, exports and describes a model; gives its scores on the validation split.

    Raises:
        CaprError: there is too little to learn from, the base cannot be used, or training went wrong.
    """
    sources = sources or Sources()
    check(recipe, sources, schedule.device)
    learn, held = discourses.split(recipe.validation, schedule.seed)
    if len(learn.lessons) < FEWEST or not held.lessons:
        fact = f"there are {len(learn.lessons)} documents to train on and {len(held.lessons)} to validate with"
        fix = "name more documents that have headings and entities (capr supervise shows what they have)"
        raise CaprError(f"{fact}, which is too few. Fix: {fix}.")
    language = language_model(sources.base, schedule.device, sources.tuning is not None) if sources.base else None
    out.mkdir(parents=True, exist_ok=True)
    if not resume:
        for old in (*out.glob("*.onnx"), *out.glob("*.npz"), out / CHECKPOINT):
            old.unlink(missing_ok=True)  # of another model that was trained here
    words = _words(discourses, recipe, schedule, sources, out, told)
    kinds = _kinds(recipe, sources)
    recipe = replace(recipe, sketched=recipe.sketched if recipe.space == "names" and "sketch" in kinds else 0.0)
    entities, aspects = _spaces(discourses, recipe, schedule, sources, words, out, told)
    read = _reader(recipe, kinds, words, language)
    balance = balances(discourses) if recipe.balanced else (None, None)
    targets = (
        Targets(discourses.entities, entities, schedule.device),
        Targets(discourses.aspects, aspects, schedule.device),
    )
    torch.manual_seed(schedule.seed)
    known = _features(learn, held, read, out / "vectors.npz" if language else None, told)
    model = Cdv(known[0][0].shape[1], entities.dimensions, aspects.dimensions, recipe.sizes, recipe.dropout)
    model.standardise(torch.cat(known[0]).float())
    if recipe.sizes.direct and isinstance(entities, Names) and isinstance(aspects, Names) and kinds:
        before = 0 if language is None else language.dimensions
        model.begin_with(*(_paths(space, kinds, before) for space in (entities, aspects)))
    runs = [Learned(model, recipe, part, some.lessons, *targets, balance)
            for part, some in zip(known, (learn, held), strict=True)]  # fmt: skip
    scores = fit(runs[0], runs[1], schedule, out, resume, lambda report: told("cdv", report))
    if language is not None and sources.tuning is not None:
        language = LanguageModel(sources.base, schedule.device, "cls")
        runs = [Tuned(model, recipe, run.features, run.lessons, *targets, balance, language) for run in runs]
        scores = fit(runs[0], runs[1], sources.tuning, out / "tuning", resume, lambda report: told("tuning", report))
        runs[1].refresh()
    if language is not None:
        language.save(out / "sentences")
    limit = threshold(runs[1], schedule)
    _export(model, runs[1], out)
    weights = tuple(2 * weight / sum(recipe.weights) for weight in recipe.weights)
    manifest = {
        "name": recipe.name or out.name, "kind": "cdv", "dimensions": entities.dimensions + aspects.dimensions,
        "sentences": [*([ENCODER] if language else []), *kinds], "space": recipe.space, "weights": weights,
        "threshold": limit, "window": WINDOW if recipe.sizes.over == "transformer" else 0, "sketched": recipe.sketched,
    }  # fmt: skip
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    data = {
        "documents": len(discourses.lessons), "sentences": sum(len(one.sentences) for one in discourses.lessons),
        "entities": len(discourses.entities), "aspects": len(discourses.aspects),
        "validation documents": len(held.lessons),
    }  # fmt: skip
    sizes = asdict(recipe) | asdict(recipe.sizes) | asdict(schedule) | {"base": Path(sources.base).name}
    settings = {name: value for name, value in sizes.items() if name not in ("sizes", "name", "licence")}
    card.write(out, recipe.name or out.name, "discourse model", data, recipe.licence, settings, scores)
    for done in (out / CHECKPOINT, out / "tuning" / CHECKPOINT, out / "vectors.npz"):
        done.unlink(missing_ok=True)
    if (out / "tuning").is_dir():
        (out / "tuning").rmdir()
    return scores


def check(recipe: Recipe, sources: Sources, device: str) -> None:
    """Complains of encoders that are missing or cannot be used, before documents are read or words are learned.

    Raises:
        CaprError: as `train` does.
    """
    if recipe.space == "encoder":
        if not (sources.queries or sources.base):
            fix = "name an encoder with --query-encoder or --base, or use --space names"
            raise CaprError(f"the query space of an encoder needs one. Fix: {fix}.")
        query_encoder(sources.queries or sources.base)
    if sources.base:
        check_base(sources.base, device, sources.tuning is not None)


def _words(
    discourses: Discourses, recipe: Recipe, schedule: Schedule, sources: Sources, out: Path, told: Told
) -> Subwords | None:
    """The word vectors, if anything reads words: given, kept by an interrupted run, or trained now."""
    if sources.base and recipe.space == "encoder":
        return None
    path = out / "words.npz"
    if path.is_file():  # of the run that is resumed
        return Subwords.load(path)

    def progress(done: int, total: int) -> None:
        told("words", Report(done, total, 0.0))

    if sources.vectors is None:
        train_words(discourses.texts, recipe.word_dimensions, seed=schedule.seed, told=progress).save(path)
    else:
        sources.vectors.save(path)
    return Subwords.load(path)  # rounded as it is kept, so that training and search see the same


def _spaces(
    discourses: Discourses, recipe: Recipe, schedule: Schedule, sources: Sources, words: Subwords | None,
    out: Path, told: Told,
) -> tuple[Space, Space]:  # fmt: skip
    """The spaces of entities and of aspects, written to the folder."""
    if recipe.space == "encoder":
        copy_encoder(query_encoder(sources.queries or sources.base), out / "queries")
        space = Encoded(OnnxEncoder(out / "queries"))
        return space, space
    assert words is not None
    if recipe.space == "names":
        every = [name for some in (*discourses.entities, *discourses.aspects) for name in some]
        fitted = Names.fitted(words, every, min(recipe.dimensions, words.dimensions))
        arrays.save(out / "names.npz", compressed=False, centre=fitted.centre, projection=fitted.projection)
        return names(words, fitted.centre, fitted.projection, recipe.sketched)
    for kind in ("entities", "aspects"):
        if _is_whole(out, words, kind):
            continue  # of the run that is resumed
        entity = kind == "entities"
        described = cdv_spaces.entities(discourses, sources.descriptions) if entity else cdv_spaces.aspects(discourses)
        cdv_spaces.train_codes(
            described, words, out, kind, recipe.dimensions, recipe.dense, seed=schedule.seed,
            device=schedule.device, progress=partial(told, kind), balanced=not entity,
        )  # fmt: skip
    return codes(out, words, "entities"), codes(out, words, "aspects")


def _is_whole(out: Path, words: Subwords, kind: str) -> bool:
    """Whether a folder has a space of codes that can be used."""
    try:
        codes(out, words, kind)
    except CaprError:
        return False
    return True


def _kinds(recipe: Recipe, sources: Sources) -> tuple[str, ...]:
    """The means of words that are read: beside an encoder that stays as it is, which words a sentence has."""
    if not sources.base:
        return recipe.means
    beside = recipe.space == "names" and sources.tuning is None
    return tuple(kind for kind in recipe.means if kind == "sketch" and beside)


def _reader(
    recipe: Recipe, kinds: Sequence[str], words: Subwords | None, language: LanguageModel | FrozenEncoder | None
) -> Read:
    def read(texts: Sequence[str]) -> Floats:
        parts = [] if language is None else [language.vectors(texts)]
        if kinds:
            assert words is not None
            parts.append(words.means(texts, kinds, recipe.words))
        return np.concatenate(parts, 1)

    return read


def _paths(space: Names, kinds: Sequence[str], before: int) -> torch.Tensor:
    """(inputs, dimensions): the way of a sentence's words into a space; an encoder's vector and flags have none."""
    return nn.functional.pad(torch.from_numpy(space.linear(kinds)), (0, 0, before, FLAGS))


def _features(
    learn: Discourses, held: Discourses, read: Read, kept: Path | None, told: Told
) -> list[list[torch.Tensor]]:
    """What the network reads; a language model's vectors are kept for a run that is resumed."""
    lessons = [*learn.lessons, *held.lessons]
    lengths = [len(lesson.sentences) for lesson in lessons]
    rows = _kept(kept) if kept is not None else None
    if rows is not None and len(rows) == sum(lengths):
        found = list(rows.split(lengths))
        return [found[: len(learn.lessons)], found[len(learn.lessons) :]]
    found = features(lessons, read, lambda done, total: told("sentences", Report(done, total, 0.0)))
    if kept is not None:
        arrays.save(kept, compressed=False, vectors=torch.cat(found).numpy())
    return [found[: len(learn.lessons)], found[len(learn.lessons) :]]


def _kept(path: Path) -> torch.Tensor | None:
    """(sentences, size): what an interrupted run has read; None if it is not there, or damaged."""
    try:
        (rows,) = arrays.load(path, "vectors of sentences", "vectors")
    except CaprError:
        return None
    return torch.from_numpy(rows)


def _export(model: Cdv, held: Learned, out: Path) -> None:
    """Writes `model.onnx` in 32 bits, and compares what it gives with torch.

    Raises:
        CaprError: they differ.
    """
    import onnxruntime

    model = model.cpu().float().eval()
    example = (torch.zeros(3, held.features[0].shape[1]),)
    export_whole(Whole(model), example, {"sentences": {0: "sentences"}}, out / "model.onnx", "vectors")
    session = onnxruntime.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
    for document, wanted in zip(held.features[:3], encoded(model, held.features[:3], "cpu"), strict=True):
        (found,) = session.run(None, {"sentences": document.float().numpy()})
        if (apart := float(np.abs(found - wanted.numpy()).max(initial=0))) > CLOSE:
            fact = f"the exported network differs from torch by {apart:.2g}"
            raise CaprError(f"{fact}. Fix: report it with the versions of torch and onnxruntime.")
