"""Trains a tagger from CoNLL files: adapts an encoder to the domain, cuts it, teaches the cut one, exports it to ONNX.

The stages are kept in the output folder while training runs, so that an interrupted run goes on after the last of them.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from capr.annotate import trigrams
from capr.annotate.windows import Pieces, Words
from capr.documents import CaprError
from capr.models.layers import cut
from capr.models.tagger import TransformerTagger, distance, loss
from capr.models.tasty import Tasty
from capr.train.adapt import adapt
from capr.train.corpus import Batches, Corpus, Example, examples, label_list, unlabelled
from capr.train.export import export
from capr.train.schedule import warm_up_then_decay
from capr.train.stages import Stages

Progress = Callable[[str, int, int, float], None]  # stage, step, steps, loss


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are what the shipped tagger was trained with."""

    layers: int | None = 6  # of the encoder's, all if None
    distil: bool = True  # the whole encoder teaches the cut one
    adapt_steps: int = 3000  # of masked-language-model training
    epochs: int = 20
    batch: int = 32
    learning_rate: float = 2e-4
    pieces: int = 192
    warmup: float = 0.1
    average: float = 0.99  # decay of the running average of the weights, which is what is kept
    with_devel: bool = True
    seed: int = 1
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")

    def as_json(self) -> dict[str, Any]:
        """All that decides what is learned; not the machine."""
        return {name: value for name, value in asdict(self).items() if name != "device"}


def fit(
    model: nn.Module, batches: Batches, settings: Settings, progress: Progress,
    stage: str, teacher: nn.Module | None = None, plain: Batches | None = None,
) -> nn.Module:  # fmt: skip
    """The running average of the model's weights after training.

    With a `teacher`, every step also takes a batch of plain text and learns the teacher's labels of both.
    """
    torch.manual_seed(settings.seed)
    model = model.to(settings.device).train()
    averaged = copy.deepcopy(model).eval()
    steps = settings.epochs * len(batches)
    optimizer = torch.optim.AdamW(model.parameters(), settings.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_then_decay(steps, settings.warmup))
    unmarked = iter(plain) if plain is not None else None
    for step, (inputs, allowed) in enumerate(islice(batches, steps), 1):
        with torch.autocast(settings.device, torch.bfloat16, enabled=settings.device == "cuda"):
            scores = model(**inputs)
            value = loss(scores, allowed)
            if teacher is not None:
                value = value + _taught(model, teacher, inputs, allowed, scores)
                if unmarked is not None:
                    value = value + _taught(model, teacher, *next(unmarked))
        if not torch.isfinite(value):
            raise CaprError(f"the loss became {value.item()} in step {step}. Fix: lower the learning rate.")
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        _average_into(averaged, model, settings.average)
        if step % 20 == 0 or step == steps:
            progress(stage, step, steps, value.item())
    return averaged


def _taught(
    model: nn.Module, teacher: nn.Module, inputs: dict[str, Tensor], allowed: Tensor, scores: Tensor | None = None
) -> Tensor:
    with torch.no_grad():
        taught = teacher(**inputs)
    return distance(model(**inputs) if scores is None else scores, taught, allowed.any(-1))


@torch.no_grad()
def _average_into(averaged: nn.Module, model: nn.Module, decay: float) -> None:
    for kept, new in zip(averaged.parameters(), model.parameters(), strict=True):
        kept.lerp_(new, 1 - decay)


def train_transformer(
    corpora: Sequence[Corpus], base: Path, texts: Sequence[str], out: Path, settings: Settings, progress: Progress
) -> None:
    """Trains and exports the transformer.

    Args:
        corpora: what to learn from; the first one's guideline is the tagger's own.
        base: a Hugging Face encoder with tokenizer.json.
        texts: of the domain, to adapt the encoder to and for the teacher to label; may be empty.
        out: the tagger's folder.
        settings: how to train.
        progress: is told how it goes.
    """
    from transformers import AutoModel

    if not (base / "tokenizer.json").is_file():
        raise CaprError(f"{base} has no tokenizer.json. Fix: name the folder of a Hugging Face encoder that has one.")
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    labels = label_list(corpora)
    markers = {corpus.name: f"[unused{i}]" for i, corpus in enumerate(corpora, 1)}  # free in BERT's vocabulary
    readers = {name: Pieces(tokenizer, marker, settings.pieces) for name, marker in markers.items()}
    batches = _batches(corpora, readers, labels, settings)
    stages = Stages(out / "stages", settings.as_json(), corpora, base.resolve(), texts)
    torch.manual_seed(settings.seed)
    encoder = AutoModel.from_pretrained(base, add_pooling_layer=False)
    steps = settings.adapt_steps if texts else 0
    layers = settings.layers or encoder.config.num_hidden_layers

    def adapted(model: Any, stage: str) -> Any:
        if not steps:
            return model

        def tell(step: int, value: float) -> None:
            progress(stage, step, steps, value)

        options = 8 * settings.batch, settings.seed, settings.device
        return stages.run(stage, model, lambda m: adapt(m, tokenizer, texts, steps, *options, tell))

    def taught(stage: str, teacher: nn.Module | None = None, plain: Batches | None = None) -> nn.Module:
        model = TransformerTagger(copy.deepcopy(encoder), len(labels))
        return stages.run(stage, model, lambda m: fit(m, batches, settings, progress, stage, teacher, plain))

    if layers >= encoder.config.num_hidden_layers:
        encoder = adapted(encoder, "adapt")
        model = taught("tagger")
    elif settings.distil:
        encoder = adapted(encoder, "adapt")
        teacher = taught("teacher").to(settings.device)
        encoder = adapted(cut(encoder, layers), f"adapt-{layers}")
        model = taught("tagger", teacher, _plain(texts, readers, labels, settings))
    else:
        encoder = adapted(cut(encoder, layers), f"adapt-{layers}")
        model = taught("tagger")
    example = (torch.ones(1, 8, dtype=torch.long), torch.ones(1, 8, dtype=torch.long))
    axes = {0: "windows", 1: "pieces"}
    export(model, example, {"input_ids": axes, "attention_mask": axes}, out)
    shutil.copy(base / "tokenizer.json", out / "tokenizer.json")
    _write_manifest(out, "transformer", labels, markers, corpora, settings, model)


def train_tasty(corpora: Sequence[Corpus], out: Path, settings: Settings, progress: Progress) -> None:
    """Trains and exports TASTY; each sentence by itself, all corpora by one guideline."""
    labels = label_list(corpora)
    words = (word for corpus in corpora for sentence in corpus.train for word in sentence.words)
    known = trigrams.vocabulary(words)
    reader = trigrams.Trigrams(known)
    readers = dict.fromkeys((corpus.name for corpus in corpora), reader)
    stages = Stages(out / "stages", settings.as_json(), corpora)
    torch.manual_seed(settings.seed)
    batches = _batches(corpora, readers, labels, settings)
    model = stages.run("tasty", Tasty(reader.size, len(labels)), lambda m: fit(m, batches, settings, progress, "tasty"))
    example = (torch.zeros(2, 8, reader.size), torch.tensor([8, 5]))
    export(model, example, {"words": {0: "windows", 1: "words"}, "lengths": {0: "windows"}}, out)
    (out / "trigrams.txt").write_text("\n".join(known), "utf-8")
    _write_manifest(out, "tasty", labels, dict.fromkeys(readers, ""), corpora, settings, model)


def _batches(
    corpora: Sequence[Corpus], readers: Mapping[str, Words], labels: Sequence[str], settings: Settings
) -> Batches:
    order: list[Example] = []
    for corpus in corpora:
        for sentences in (corpus.train, corpus.devel if settings.with_devel else []):
            order.extend(examples(sentences, readers[corpus.name], labels, corpus.types))
    return Batches(order, readers[corpora[0].name], settings.batch, settings.seed, settings.device)


def _plain(
    texts: Sequence[str], readers: Mapping[str, Words], labels: Sequence[str], settings: Settings
) -> Batches | None:
    """Windows of the texts, shared out between the guidelines."""
    order: list[Example] = []
    chosen = random.Random(settings.seed).sample(list(texts), min(len(texts), 8000))
    for i, reader in enumerate(readers.values()):
        order.extend(unlabelled(chosen[i :: len(readers)], reader, len(labels)))
    reader = next(iter(readers.values()))
    return Batches(order, reader, 2 * settings.batch, settings.seed, settings.device) if order else None


def _write_manifest(
    out: Path, architecture: str, labels: Sequence[str], markers: dict[str, str], corpora: Sequence[Corpus],
    settings: Settings, model: nn.Module,
) -> None:  # fmt: skip
    manifest = {
        "architecture": architecture,
        "labels": list(labels),
        "guidelines": markers,
        "pieces": settings.pieces,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "sentences": {corpus.name: len(corpus.train) + len(corpus.devel) * settings.with_devel for corpus in corpora},
        "settings": settings.as_json(),
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
