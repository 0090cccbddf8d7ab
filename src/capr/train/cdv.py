"""Trains a discourse model (CDV): writes a folder with network, word vectors, query spaces, manifest and model card.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020;
Grundmann et al. (CAPR), section 3.4, for the language model that is fine-tuned in two stages.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from capr.documents import CaprError
from capr.documents.quantity import quantity
from capr.models.cdv import Cdv, CdvForExport
from capr.models.cdv_family import Recipe
from capr.models.export import Exported, export_whole
from capr.models.family import Schedule
from capr.runtime import arrays
from capr.runtime.discourse import ENCODER, FLAGS, description_space, word_spaces
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.onnx import Floats
from capr.runtime.query_spaces import EncoderSpace, QuerySpace, WordSpace
from capr.runtime.subwords import Subwords
from capr.supervise.discourses import TrainingDiscourses
from capr.train import cdv_spaces
from capr.train.cdv_task import CdvObjective, CdvTask, LabelVectors, balances, encode, features, threshold
from capr.train.finish import CardFacts, TrainedModel, begin, check_close, finish, too_few
from capr.train.language_model import (
    FrozenEncoder,
    LanguageModel,
    TunedCdvObjective,
    check_base,
    copy_encoder,
    language_model,
    query_encoder,
)
from capr.train.loop import Progress, TrainingStatus, fit, no_progress
from capr.train.word_vectors import train_words

FEWEST = 4  # documents to train on
WINDOW = 396  # sentences that a transformer reads together
TUNING = "tuning"  # the second stage, and the folder of its checkpoint
CLOSE = 1e-3  # maximum difference between the exported network and torch
Read = Callable[[Sequence[str]], Floats]  # a function from sentences to vectors


@dataclass(frozen=True)
class CdvSources:
    """The sources of a model besides documents.

    Attributes:
        vectors: pretrained word vectors. Default: train them on the documents.
        base: an encoder that reads the sentences, instead of word vectors.
        queries: an encoder for the query space `encoder`. Default: `base`.
        descriptions: names of entities with a sentence each, which also train the space of codes.
        tuning: the schedule of a second stage that also trains the base. Default: no such stage.
    """

    vectors: Subwords | None = None
    base: str = ""
    queries: str = ""
    descriptions: Sequence[tuple[Sequence[str], str]] = ()
    tuning: Schedule | None = None


def train(
    discourses: TrainingDiscourses,
    recipe: Recipe,
    schedule: Schedule,
    out: Path,
    sources: CdvSources | None = None,
    resume: bool = False,
    progress: Progress = no_progress,
) -> dict[str, float]:
    """Train, validate, export and describe a model, and return its scores on the validation split.

    Raises:
        CaprError: there is too little to learn from, the base cannot be used, or training went wrong.
    """
    sources = sources or CdvSources()
    check(recipe, sources, schedule.device)
    train_split, held_split = split(discourses, recipe, schedule)
    language = language_model(sources.base, schedule.device, sources.tuning is not None) if sources.base else None
    begin(out, resume, "*.npz")
    if not resume:
        for old in (out / TUNING, out / cdv_spaces.SPACES):
            shutil.rmtree(old, ignore_errors=True)
    words = _words(discourses, recipe, schedule, sources, out, progress)
    kinds = _kinds(recipe, sources)
    recipe = replace(recipe, sketched=recipe.sketched if recipe.space == "names" and "sketch" in kinds else 0.0)
    entities, aspects = _spaces(discourses, recipe, schedule, sources, words, out, resume, progress)
    read = _reader(recipe, kinds, words, language)
    balance = balances(discourses) if recipe.balanced else (None, None)
    targets = (
        LabelVectors(discourses.entities, entities, schedule.device),
        LabelVectors(discourses.aspects, aspects, schedule.device),
    )
    torch.manual_seed(schedule.seed)
    cache = out / "vectors.npz" if language else None
    split_features = _features(train_split, held_split, read, cache, progress)
    model = Cdv(split_features[0][0].shape[1], entities.dimensions, aspects.dimensions, recipe.sizes, recipe.dropout)
    model.standardise(torch.cat(split_features[0]).float())
    if recipe.sizes.direct and isinstance(entities, WordSpace) and isinstance(aspects, WordSpace) and kinds:
        before = 0 if language is None else language.dimensions
        model.begin_with(*(_paths(space, kinds, before) for space in (entities, aspects)))
    objectives = [
        CdvObjective(model, recipe, inputs, split.documents, *targets, balance)
        for inputs, split in zip(split_features, (train_split, held_split), strict=True)
    ]
    scores = fit(CdvTask(objectives[0], objectives[1], schedule, "cdv"), schedule, out, resume, progress)
    if language is not None and sources.tuning is not None:
        language = LanguageModel(sources.base, schedule.device, "cls", limit=schedule.limit)
        objectives = [
            TunedCdvObjective(model, recipe, objective.features, objective.documents, *targets, balance, language)
            for objective in objectives
        ]
        scores = fit(
            CdvTask(objectives[0], objectives[1], sources.tuning, TUNING),
            sources.tuning,
            out / TUNING,
            resume,
            progress,
        )
        objectives[1].refresh()
    if language is not None:
        language.save(out / "sentences")
    data = {
        "documents": len(discourses.documents),
        "sentences": sum(len(document.sentences) for document in discourses.documents),
        "entities": len(discourses.entities),
        "aspects": len(discourses.aspects),
        "validation documents": len(held_split.documents),
    }
    fields = asdict(recipe) | asdict(recipe.sizes) | asdict(schedule) | {"base": Path(sources.base).name}
    settings = {name: value for name, value in fields.items() if name not in ("sizes", "name", "licence")}
    facts = CardFacts(recipe.name or out.name, "discourse model", data, recipe.licence, settings, scores)
    weights = tuple(2 * weight / sum(recipe.weights) for weight in recipe.weights)
    manifest = {
        "kind": "cdv",
        "dimensions": entities.dimensions + aspects.dimensions,
        "sentences": [*([ENCODER] if language else []), *kinds],
        "space": recipe.space,
        "weights": weights,
        "threshold": threshold(objectives[1], schedule.device),
        "window": WINDOW if recipe.sizes.over == "transformer" else 0,
        "sketched": recipe.sketched,
    }
    return finish(
        TrainedDiscourseModel(model, objectives[1], manifest), out, facts, done=(out / TUNING, out / "vectors.npz")
    )


def split(
    discourses: TrainingDiscourses, recipe: Recipe, schedule: Schedule
) -> tuple[TrainingDiscourses, TrainingDiscourses]:
    """Return the documents to train on, and those to validate with.

    Raises:
        CaprError: there are too few of them.
    """
    train_split, held_split = discourses.split(recipe.validation, schedule.seed)
    if len(train_split.documents) < FEWEST or not held_split.documents:
        raise too_few(quantity(len(train_split.documents), "document"), f"{len(held_split.documents)}")
    return train_split, held_split


def check(recipe: Recipe, sources: CdvSources, device: str) -> None:
    """Check the encoders before reading documents or training word vectors.

    Raises:
        CaprError: an encoder is missing or cannot be used.
    """
    if recipe.space == "encoder":
        if not (sources.queries or sources.base):
            fix = "name an encoder with --query-encoder or --base, or use --space names"
            raise CaprError(f"the query space of an encoder needs an encoder. Fix: {fix}.")
        query_encoder(sources.queries or sources.base)
    if sources.base:
        check_base(sources.base, device, sources.tuning is not None)


def _words(
    discourses: TrainingDiscourses,
    recipe: Recipe,
    schedule: Schedule,
    sources: CdvSources,
    out: Path,
    progress: Progress,
) -> Subwords | None:
    """Return the word vectors: from an interrupted run, pretrained, or trained now; None if nothing reads words."""
    if sources.base and recipe.space == "encoder":
        return None
    path = out / "words.npz"
    if path.is_file():  # from an interrupted run
        return Subwords.load(path)

    def report(done: int, total: int) -> None:
        progress(TrainingStatus(done, total, None, stage="words"))

    if sources.vectors is None:
        train_words(discourses.texts, recipe.word_dimensions, seed=schedule.seed, progress=report).save(path)
    else:
        sources.vectors.save(path)
    return Subwords.load(path)  # rounded as in the file, so that training and search use the same vectors


def _spaces(
    discourses: TrainingDiscourses,
    recipe: Recipe,
    schedule: Schedule,
    sources: CdvSources,
    words: Subwords | None,
    out: Path,
    resume: bool,
    progress: Progress,
) -> tuple[QuerySpace, QuerySpace]:
    """Write the spaces of entities and of aspects to the folder, and return them."""
    if recipe.space == "encoder":
        copy_encoder(query_encoder(sources.queries or sources.base), out / "queries")
        space = EncoderSpace(OnnxEncoder(out / "queries"))
        return space, space
    assert words is not None
    if recipe.space == "names":
        all_names = [name for synonyms in (*discourses.entities, *discourses.aspects) for name in synonyms]
        fitted = WordSpace.fitted(words, all_names, min(recipe.dimensions, words.dimensions))
        arrays.save(out / "names.npz", compressed=False, centre=fitted.centre, projection=fitted.projection)
        return word_spaces(words, fitted.centre, fitted.projection, recipe.sketched)
    for kind in ("entities", "aspects"):
        if _has_space(out, words, kind):
            continue  # from an interrupted run
        entity = kind == "entities"
        if entity:
            descriptions = cdv_spaces.entities(discourses, sources.descriptions)
        else:
            descriptions = cdv_spaces.aspects(discourses)
        cdv_spaces.train_codes(
            descriptions,
            words,
            out,
            kind,
            recipe.dimensions,
            recipe.dense,
            seed=schedule.seed,
            device=schedule.device,
            progress=progress,
            balanced=not entity,
            resume=resume,
        )
    return description_space(out, words, "entities"), description_space(out, words, "aspects")


def _has_space(out: Path, words: Subwords, kind: str) -> bool:
    """Return whether a folder has a complete space of codes."""
    try:
        description_space(out, words, kind)
    except CaprError:
        return False
    return True


def _kinds(recipe: Recipe, sources: CdvSources) -> tuple[str, ...]:
    """Return the means of word vectors that the network reads: with a frozen encoder, only the sketch."""
    if not sources.base:
        return recipe.means
    sketches = recipe.space == "names" and sources.tuning is None
    return tuple(kind for kind in recipe.means if kind == "sketch" and sketches)


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


def _paths(space: WordSpace, kinds: Sequence[str], before: int) -> torch.Tensor:
    """Return the projection of a sentence's inputs into a space (inputs, dimensions).

    Only word vectors have a projection. It is 0 for an encoder's vector, which has `before` dimensions, and for flags.
    """
    return nn.functional.pad(torch.from_numpy(space.linear(kinds)), (0, 0, before, FLAGS))


def _features(
    train_split: TrainingDiscourses, held_split: TrainingDiscourses, read: Read, cache: Path | None, progress: Progress
) -> list[list[torch.Tensor]]:
    """Return the inputs of the documents of both splits. With a `cache`, a resumed run reads them from that file."""
    documents = [*train_split.documents, *held_split.documents]
    lengths = [len(document.sentences) for document in documents]
    count = len(train_split.documents)
    rows = _load_cache(cache) if cache is not None else None
    if rows is not None and len(rows) == sum(lengths):
        inputs = list(rows.split(lengths))
        return [inputs[:count], inputs[count:]]
    inputs = features(
        documents, read, lambda done, total: progress(TrainingStatus(done, total, None, stage="sentences"))
    )
    if cache is not None:
        arrays.save(cache, compressed=False, vectors=torch.cat(inputs).numpy())
    return [inputs[:count], inputs[count:]]


def _load_cache(path: Path) -> torch.Tensor | None:
    """Return the inputs (sentences, size) of an interrupted run, or None if the file is missing or damaged."""
    try:
        (rows,) = arrays.load(path, "vectors of sentences", "vectors")
    except CaprError:
        return None
    return torch.from_numpy(rows)


class TrainedDiscourseModel(TrainedModel):
    """The trained model, with documents for the check of the export."""

    def __init__(self, model: Cdv, held: CdvObjective, manifest: Mapping[str, Any]) -> None:
        self.model, self.held, self._manifest = model, held, manifest

    def save_weights(self, folder: Path) -> None:
        """Write nothing: a discourse model cannot be trained further."""

    def manifest(self) -> Mapping[str, Any]:
        return self._manifest

    def export(self, folder: Path) -> None:
        """Write `model.onnx` in 32 bits."""
        example = (torch.zeros(3, self.held.features[0].shape[1]),)
        axes = {0: "sentences"}
        path = folder / "model.onnx"
        export_whole(CdvForExport(self.model), example, {"sentences": axes}, path, {"vectors": axes})

    def check(self, folder: Path) -> dict[str, float]:
        model, documents = self.model.cpu().float().eval(), self.held.features[:3]
        exported = Exported(folder / "model.onnx", ("sentences",))
        for document, expected in zip(documents, encode(model, documents, "cpu"), strict=True):
            check_close(exported(sentences=document.float()), expected, CLOSE)
        return {}
