"""Trains a tagger from CoNLL files: adapts an encoder to the domain, cuts it, teaches the cut one, exports it to ONNX.

The stages are kept in the output folder while training runs, so that an interrupted run goes on after the last of them.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

import capr
from capr.annotate import trigrams
from capr.annotate.tagger import WORD
from capr.annotate.windows import Pieces, Window, Words
from capr.documents import CaprError
from capr.models.tagger import TransformerTagger, cut, distance, loss
from capr.models.tasty import Tasty

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


class Labelled(NamedTuple):
    """A sentence of a CoNLL file: its words and their BIO labels."""

    words: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Corpus:
    """A folder with train.tsv and devel.tsv. Its name stands for the guideline that its annotators followed."""

    name: str
    train: list[Labelled]
    devel: list[Labelled]

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Reads the folder; devel.tsv may be missing."""
        if not (folder / "train.tsv").is_file():
            fix = "name a folder with train.tsv (a word and its BIO label a line), and devel.tsv if there is one"
            raise CaprError(f"{folder} has no train.tsv. Fix: {fix}.")
        devel = folder / "devel.tsv"
        return cls(folder.name, list(labelled(folder / "train.tsv")), list(labelled(devel)) if devel.is_file() else [])

    @property
    def types(self) -> set[str]:
        """What the corpus annotates."""
        return {label[2:] for sentence in self.train for label in sentence.labels if label != "O"}


def labelled(path: Path) -> Iterator[Labelled]:
    """The sentences of a CoNLL file."""
    for document in capr.read(path, format="conll", strict=True):
        words = [match.span() for match in WORD.finditer(document.text)]
        labels = ["O"] * len(words)
        for mention in document.annotated("mention"):
            inside = [
                i for i, (begin, end) in enumerate(words) if mention.span.begin <= begin and end <= mention.span.end
            ]
            for i in inside:
                labels[i] = f"{'B' if i == inside[0] else 'I'}-{mention.value['type']}"
        yield Labelled([document.text[begin:end] for begin, end in words], labels)


class Example(NamedTuple):
    """A window and which labels each of its positions may have; all false for one that does not count."""

    window: Window
    allowed: Tensor  # (positions, labels)


def examples(sentences: Sequence[Labelled], reader: Words, labels: Sequence[str], types: set[str]) -> Iterator[Example]:
    """Windows of consecutive sentences. A word outside of all entities may be of a type that the corpus leaves out."""
    ids = {label: i for i, label in enumerate(labels)}
    rows = {label: [other == label for other in labels] for label in labels}
    rows["O"] = [other == "O" or other[2:] not in types for other in labels]
    flat = (label for sentence in sentences for label in sentence.labels)
    for window in reader.windows([sentence.words for sentence in sentences]):
        allowed = torch.zeros(len(window.pieces), len(ids), dtype=torch.bool)
        for position, label in zip(window.firsts, flat, strict=False):
            if position >= 0:
                allowed[position] = torch.tensor(rows[label])
        yield Example(window, allowed)


def unlabelled(texts: Sequence[str], reader: Words, labels: int) -> Iterator[Example]:
    """Windows of plain text, of which the teacher says what they hold."""
    for text in texts:
        cut_text = [WORD.findall(span.of(text)) for span in capr.sentences(text)]
        for window in reader.windows([words for words in cut_text if words]):
            counted = torch.zeros(len(window.pieces), labels, dtype=torch.bool)
            counted[[position for position in window.firsts if position >= 0]] = True
            yield Example(window, counted)


def collate(chosen: Sequence[Example], reader: Words, device: str) -> tuple[dict[str, Tensor], Tensor]:
    """The network's input, and the allowed labels (batch, positions, labels)."""
    arrays = reader.arrays([example.window for example in chosen])
    inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    allowed = nn.utils.rnn.pad_sequence([example.allowed for example in chosen], batch_first=True)
    on_device = {name: tensor if name == "lengths" else tensor.to(device) for name, tensor in inputs.items()}
    return on_device, allowed.to(device)


class Batches:
    """Batches without end, shuffled anew each time round."""

    def __init__(self, order: Sequence[tuple[Example, Words]], size: int, seed: int, device: str) -> None:
        self.order, self.size, self.device = list(order), size, device
        self.shuffle = random.Random(seed)

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)

    def __iter__(self) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
        while self.order:
            self.shuffle.shuffle(self.order)
            for begin in range(0, len(self.order), self.size):
                chosen = self.order[begin : begin + self.size]
                yield collate([example for example, _ in chosen], chosen[0][1], self.device)


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


def warm_up_then_decay(steps: int, warmup: float) -> Callable[[int], float]:
    """The learning rate rises for a part of the steps, then falls in a straight line to 0."""
    rise = max(1, int(steps * warmup))
    return lambda step: min((step + 1) / rise, max(0.0, (steps - step) / max(1, steps - rise)))


@torch.no_grad()
def _average_into(averaged: nn.Module, model: nn.Module, decay: float) -> None:
    for kept, new in zip(averaged.parameters(), model.parameters(), strict=True):
        kept.lerp_(new, 1 - decay)


def adapt(
    encoder: Any, tokenizer: Tokenizer, texts: Sequence[str], steps: int, settings: Settings,
    progress: Progress, stage: str,
) -> Any:  # fmt: skip
    """Goes on with the encoder's masked-language-model training on texts of the domain.

    Fifteen per cent of the pieces are hidden, all by the mask; the output matrix is the input embedding.
    """
    torch.manual_seed(settings.seed)
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    ids = torch.from_numpy(np.concatenate([np.array(encoding.ids, np.int64) for encoding in encodings]))
    length, size = min(128, encoder.config.max_position_embeddings - 2, len(ids) - 1), 8 * settings.batch
    encoder = encoder.to(settings.device).train()
    hidden = encoder.config.hidden_size
    head = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden)).to(settings.device)
    embedding = encoder.get_input_embeddings().weight
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, 3e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_then_decay(steps, 0.05))
    first, last, mask = (tokenizer.token_to_id(token) or 0 for token in ("[CLS]", "[SEP]", "[MASK]"))
    for step in range(1, steps + 1):
        starts = torch.randint(0, len(ids) - length, (size,))
        pieces = ids[starts[:, None] + torch.arange(length)]  # (batch, length)
        chosen = torch.rand(pieces.shape) < 0.15
        hidden_pieces = pieces.masked_fill(chosen, mask)
        inputs = torch.cat([torch.full((size, 1), first), hidden_pieces, torch.full((size, 1), last)], 1)
        with torch.autocast(settings.device, torch.bfloat16, enabled=settings.device == "cuda"):
            states = encoder(input_ids=inputs.to(settings.device)).last_hidden_state[:, 1:-1]
            scores = head(states[chosen.to(settings.device)]) @ embedding.T  # (chosen, vocabulary)
        value = nn.functional.cross_entropy(scores.float(), pieces[chosen].to(settings.device))
        value.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 20 == 0 or step == steps:
            progress(stage, step, steps, value.item())
    return encoder


class Stages:
    """Weights kept between runs: a stage that was finished with the same settings and data is not repeated."""

    def __init__(self, folder: Path, settings: Settings, *learned_from: object) -> None:
        self.folder = folder
        self.settings = {name: value for name, value in asdict(settings).items() if name != "device"}
        self.settings["data"] = hashlib.sha256(repr(learned_from).encode()).hexdigest()

    def run(self, stage: str, model: nn.Module, make: Callable[[Any], nn.Module]) -> nn.Module:
        """The model after the stage: as it was kept, or made now and kept."""
        path = self.folder / f"{stage}.pt"
        if path.is_file():
            kept = torch.load(path, map_location="cpu", weights_only=True)
            if kept["settings"] == self.settings:
                model.load_state_dict(kept["weights"])
                return model.eval()
        made = make(model)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        torch.save({"settings": self.settings, "weights": made.state_dict()}, part)
        part.replace(path)
        return made.eval()


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
    stages = Stages(out / "stages", settings, corpora, base.resolve(), texts)
    torch.manual_seed(settings.seed)
    encoder = AutoModel.from_pretrained(base, add_pooling_layer=False)
    steps = settings.adapt_steps if texts else 0
    layers = settings.layers or encoder.config.num_hidden_layers

    def adapted(model: Any, stage: str) -> Any:
        if not steps:
            return model
        return stages.run(stage, model, lambda m: adapt(m, tokenizer, texts, steps, settings, progress, stage))

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
    stages = Stages(out / "stages", settings, corpora)
    torch.manual_seed(settings.seed)
    batches = _batches(corpora, readers, labels, settings)
    model = stages.run("tasty", Tasty(reader.size, len(labels)), lambda m: fit(m, batches, settings, progress, "tasty"))
    example = (torch.zeros(2, 8, reader.size), torch.tensor([8, 5]))
    export(model, example, {"words": {0: "windows", 1: "words"}, "lengths": {0: "windows"}}, out)
    (out / "trigrams.txt").write_text("\n".join(known), "utf-8")
    _write_manifest(out, "tasty", labels, dict.fromkeys(readers, ""), corpora, settings, model)


def label_list(corpora: Sequence[Corpus]) -> list[str]:
    """O, then B and I of each type."""
    types = sorted({kind for corpus in corpora for kind in corpus.types}, reverse=True)
    if not types:
        names = ", ".join(corpus.name for corpus in corpora)
        raise CaprError(f"there is no entity in {names}. Fix: give train.tsv BIO labels such as B-Disease.")
    return ["O", *(f"{place}-{kind}" for kind in types for place in "BI")]


def _batches(corpora: Sequence[Corpus], readers: dict[str, Any], labels: Sequence[str], settings: Settings) -> Batches:
    order: list[tuple[Example, Words]] = []
    for corpus in corpora:
        for sentences in (corpus.train, corpus.devel if settings.with_devel else []):
            reader = readers[corpus.name]
            order.extend((example, reader) for example in examples(sentences, reader, labels, corpus.types))
    return Batches(order, settings.batch, settings.seed, settings.device)


def _plain(texts: Sequence[str], readers: dict[str, Any], labels: Sequence[str], settings: Settings) -> Batches:
    """Windows of the texts, shared out between the guidelines."""
    order: list[tuple[Example, Words]] = []
    chosen = random.Random(settings.seed).sample(list(texts), min(len(texts), 8000))
    for i, reader in enumerate(readers.values()):
        mine = chosen[i :: len(readers)]
        order.extend((example, reader) for example in unlabelled(mine, reader, len(labels)))
    return Batches(order, 2 * settings.batch, settings.seed, settings.device)


def export(model: nn.Module, example: tuple[Tensor, ...], axes: dict[str, dict[int, str]], out: Path) -> None:
    """Writes `model.onnx`, its weights in 8 bits, and beside it `model.fp32.onnx` to compare with."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    out.mkdir(parents=True, exist_ok=True)
    whole, small = out / "model.fp32.onnx", out / "model.onnx"
    with warnings.catch_warnings():  # of torch, to its own developers
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.cpu().float().eval(), example, str(whole), input_names=list(axes), output_names=["scores"],
            dynamic_axes={**axes, "scores": next(iter(axes.values()))}, opset_version=17, dynamo=False,
        )  # fmt: skip
    operations = ["MatMul", "Gather", "LSTM"]
    quantize_dynamic(whole, small, op_types_to_quantize=operations, weight_type=QuantType.QInt8, per_channel=True)


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
        "settings": asdict(replace(settings, device="")),
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
