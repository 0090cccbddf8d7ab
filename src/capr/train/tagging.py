"""Trains a tagger from CoNLL files: adapts an encoder to the domain, removes layers, distils, and exports to ONNX.

The output folder keeps the finished stages. An interrupted run continues from the last checkpoint of the last stage.
"""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.export import Exported, export
from capr.models.family import Schedule
from capr.models.layers import cut
from capr.models.tagger import TransformerTagger, distance, loss
from capr.models.tagger_family import TaggerFamily
from capr.models.tagger_inputs import Batches, LabelledWindow, labelled_windows, unlabelled_windows
from capr.models.tasty import Tasty
from capr.runtime import trigrams
from capr.runtime.tagger_windows import TaggerInputs, TaggerPieces
from capr.supervise.corpora import Corpus, label_list
from capr.train.adapt import adapt
from capr.train.finish import CardFacts, TrainedModel, check_close, check_unfinished, finish
from capr.train.loop import Progress, TrainingTask, fit, no_progress
from capr.train.stages import Stages

STAGES = "stages"  # the folder of the stages
PLAIN = 8000  # maximum number of texts that a teacher labels
CLOSE = 1e-3  # maximum difference between the scores of the exported network and of torch


def train(
    corpora: Sequence[Corpus],
    family: TaggerFamily,
    schedule: Schedule,
    out: Path,
    texts: Sequence[str] = (),
    progress: Progress = no_progress,
) -> dict[str, float]:
    """Train and export a tagger.

    Args:
        corpora: the training corpora. The tagger labels by the guideline of the first.
        family: the settings of the tagger.
        schedule: the schedule of each stage.
        out: the output folder.
        texts: texts of the domain, to adapt the encoder and for the teacher to label; may be empty.
        progress: called after each step.

    Raises:
        CaprError: there is nothing to learn, the base cannot be used, or training went wrong.
    """
    check_unfinished(out)
    family.check(bool(texts))
    run = Run(corpora, label_list(corpora), family, schedule, out, texts, progress)
    product = _tasty(run) if family.architecture == "tasty" else _transformer(run)
    data = {name: f"{count:,} sentences" for name, count in run.sentences().items()}
    settings = product.settings | {"base": Path(family.base).name}
    facts = CardFacts(family.name or out.name, "tagger", data, family.licence, settings, {})
    return finish(product, out, facts)


@dataclass(frozen=True)
class Run:
    """A training run: the arguments of `train`, and the labels of the corpora."""

    corpora: Sequence[Corpus]
    labels: Sequence[str]
    family: TaggerFamily
    schedule: Schedule
    out: Path
    texts: Sequence[str]
    progress: Progress

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the weights, without the device."""
        names = ("epochs", "batch", "learning_rate", "warmup", "seed")
        return self.family.settings() | {name: value for name, value in asdict(self.schedule).items() if name in names}

    def sentences(self) -> dict[str, int]:
        """Return the number of training sentences of each corpus."""
        return {corpus.name: len(corpus.train) + len(corpus.devel) * self.family.devel for corpus in self.corpora}

    def batches(self, readers: Mapping[str, TaggerInputs]) -> Batches:
        """Return the batches of all corpora, each read by the reader of its guideline."""
        order: list[LabelledWindow] = []
        for corpus in self.corpora:
            for sentences in (corpus.train, corpus.devel if self.family.devel else []):
                order.extend(labelled_windows(sentences, readers[corpus.name], self.labels, corpus.types))
        schedule = self.schedule
        return Batches(order, readers[self.corpora[0].name], schedule.batch, schedule.seed, schedule.device)

    def plain_batches(self, readers: Mapping[str, TaggerInputs]) -> Batches | None:
        """Return windows of plain texts. Each guideline gets an equal part of the texts."""
        order: list[LabelledWindow] = []
        texts, schedule = list(self.texts), self.schedule
        sample = random.Random(schedule.seed).sample(texts, min(len(texts), PLAIN))
        for i, reader in enumerate(readers.values()):
            order.extend(unlabelled_windows(sample[i :: len(readers)], reader, len(self.labels)))
        reader = next(iter(readers.values()))
        return Batches(order, reader, 2 * schedule.batch, schedule.seed, schedule.device) if order else None

    def fit(
        self,
        model: nn.Module,
        batches: Batches,
        stage: str,
        folder: Path,
        teacher: nn.Module | None = None,
        plain: Batches | None = None,
    ) -> nn.Module:
        """Train a model in a stage with a checkpoint in the folder, and return it; see `TaggingTask`."""
        task = TaggingTask(model, batches, stage, self.family.average, teacher, plain)
        fit(task, self.schedule, folder, True, self.progress)
        return model

    def manifest(self, markers: Mapping[str, str]) -> dict[str, Any]:
        """Return the manifest, with the marker of each guideline."""
        return {
            "architecture": self.family.architecture,
            "labels": list(self.labels),
            "guidelines": dict(markers),
            "pieces": self.family.pieces,
            "sentences": self.sentences(),
        }


class TaggingTask(TrainingTask):
    """The task of learning labels. An epoch has all windows.

    With a `teacher`, each step also has a batch of plain text, and the model learns the teacher's labels of both.
    """

    remedy = "lower the learning rate"

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        stage: str,
        average: float,
        teacher: nn.Module | None = None,
        plain: Batches | None = None,
    ) -> None:
        self.model, self.batches, self.stage, self.average = model, batches, stage, average
        self.teacher, self.plain = teacher, plain
        self.epoch_steps = len(batches)

    def batch(self, step: int) -> Any:
        return self.batches[step], self.plain[step] if self.plain is not None and self.teacher is not None else None

    def loss(self, batch: Any) -> Tensor:
        (inputs, allowed), plain = batch
        scores = self.model(**inputs)
        value = loss(scores, allowed)
        if self.teacher is not None:
            value = value + distance(scores, self._teacher_scores(inputs), allowed.any(-1))
            if plain is not None:
                inputs, allowed = plain
                value = value + distance(self.model(**inputs), self._teacher_scores(inputs), allowed.any(-1))
        return value

    @torch.no_grad()
    def _teacher_scores(self, inputs: dict[str, Tensor]) -> Tensor:
        assert self.teacher is not None
        return self.teacher(**inputs)

    def optimizer(self, rate: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), rate, weight_decay=0.01)


class TrainedTagger(TrainedModel):
    """The trained tagger."""

    def __init__(
        self,
        model: nn.Module,
        example: tuple[Tensor, ...],
        axes: dict[str, dict[int, str]],
        manifest: Mapping[str, Any],
        write: Any,
        settings: dict[str, Any],
    ) -> None:
        self.model, self.example, self.axes, self.write, self.settings = model, example, axes, write, settings
        self._manifest = manifest

    def save_weights(self, folder: Path) -> None:
        """Write nothing: a tagger cannot be trained further."""

    def manifest(self) -> Mapping[str, Any]:
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return {"kind": "tagger", **self._manifest, "parameters": parameters, "settings": self.settings}

    def export(self, folder: Path) -> None:
        export(self.model, self.example, self.axes, folder)
        self.write(folder)

    def check(self, folder: Path) -> dict[str, float]:
        exported = Exported(folder / "model.fp32.onnx", tuple(self.axes))
        with torch.no_grad():
            expected = self.model(*self.example)
        scores = exported(**dict(zip(self.axes, self.example, strict=True)))
        check_close(scores, expected, CLOSE * max(1.0, float(expected.abs().max())))
        return {}


def _transformer(run: Run) -> TrainedTagger:
    """Train a transformer in stages: adapt the encoder, train a teacher, and train the encoder with fewer layers."""
    from tokenizers import Tokenizer
    from transformers import AutoModel

    family, schedule, texts = run.family, run.schedule, run.texts
    base = Path(family.base)
    if not (base / "tokenizer.json").is_file():
        raise CaprError(f"{base} has no tokenizer.json. Fix: name the folder of a Hugging Face encoder that has one.")
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    markers = {corpus.name: f"[unused{i}]" for i, corpus in enumerate(run.corpora, 1)}  # free in BERT's vocabulary
    readers = {name: TaggerPieces(tokenizer, marker, family.pieces) for name, marker in markers.items()}
    batches, settings = run.batches(readers), run.settings()
    stages = Stages(run.out / STAGES, settings, run.corpora, base.resolve(), texts)
    torch.manual_seed(schedule.seed)
    encoder = AutoModel.from_pretrained(base, add_pooling_layer=False)
    steps = family.adapt_steps if texts else 0
    layers = family.layers or encoder.config.num_hidden_layers

    def adapt_stage(model: Any, stage: str) -> Any:
        if not steps:
            return model

        def make(model: Any, folder: Path) -> Any:
            options = steps, 8 * schedule.batch, schedule.seed, schedule.device
            return adapt(model, tokenizer, texts, *options, stage, folder, run.progress)

        return stages.run(stage, model, make)

    def train_stage(stage: str, teacher: nn.Module | None = None, plain: Batches | None = None) -> nn.Module:
        def make(model: Any, folder: Path) -> nn.Module:
            return run.fit(model, batches, stage, folder, teacher, plain)

        return stages.run(stage, TransformerTagger(copy.deepcopy(encoder), len(run.labels)), make)

    if layers >= encoder.config.num_hidden_layers:
        encoder = adapt_stage(encoder, "adapt")
        model = train_stage("tagger")
    elif family.distil:
        encoder = adapt_stage(encoder, "adapt")
        teacher = train_stage("teacher").to(schedule.device)
        encoder = adapt_stage(cut(encoder, layers), f"adapt-{layers}")
        model = train_stage("tagger", teacher, run.plain_batches(readers))
    else:
        encoder = adapt_stage(cut(encoder, layers), f"adapt-{layers}")
        model = train_stage("tagger")
    example = (torch.ones(1, 8, dtype=torch.long), torch.ones(1, 8, dtype=torch.long))
    axes = {name: {0: "windows", 1: "pieces"} for name in ("input_ids", "attention_mask")}

    def write(folder: Path) -> None:
        shutil.copy(base / "tokenizer.json", folder / "tokenizer.json")

    return TrainedTagger(model, example, axes, run.manifest(markers), write, settings)


def _tasty(run: Run) -> TrainedTagger:
    """Train TASTY. It reads each sentence separately, and has one guideline for all corpora."""
    words = (word for corpus in run.corpora for sentence in corpus.train for word in sentence.words)
    vocabulary = trigrams.vocabulary(words)
    reader = trigrams.Trigrams(vocabulary)
    readers = dict.fromkeys((corpus.name for corpus in run.corpora), reader)
    settings = run.settings()
    stages = Stages(run.out / STAGES, settings, run.corpora)
    torch.manual_seed(run.schedule.seed)
    batches = run.batches(readers)

    def make(model: Any, folder: Path) -> nn.Module:
        return run.fit(model, batches, "tasty", folder)

    model = stages.run("tasty", Tasty(reader.size, len(run.labels)), make)
    example = (torch.zeros(2, 8, reader.size), torch.tensor([8, 5]))
    axes = {"words": {0: "windows", 1: "words"}, "lengths": {0: "windows"}}

    def write(folder: Path) -> None:
        (folder / "trigrams.txt").write_text("\n".join(vocabulary), "utf-8")

    return TrainedTagger(model, example, axes, run.manifest(dict.fromkeys(readers, "")), write, settings)
