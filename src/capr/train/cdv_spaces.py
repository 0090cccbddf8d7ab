"""Trains the query spaces of the paper: a network and an index for entities, and the same for aspects.

Reference: Arnold et al. (CDV), 2020, sections 3 and 5.2, and its released code: sentences that describe an entity
predict the Bloom code of the entity, and sentences under a heading predict the code of the words of the heading.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.codes import BITS, CodeNetwork, CodeNetworkForExport, bloom, bp_mll
from capr.models.export import export_whole
from capr.models.family import Schedule
from capr.runtime import arrays
from capr.runtime.onnx import Floats
from capr.runtime.query_spaces import unit
from capr.runtime.subwords import Subwords, words_of
from capr.segment.aspects import aspect_of, keys
from capr.supervise.discourses import TrainingDiscourses
from capr.supervise.labels import OVERVIEW
from capr.text.digest import digest_records
from capr.text.names import plain_key
from capr.train.loop import Progress, TrainingTask, fit, no_progress
from capr.train.schedule import Rate, decay_by_epoch

BATCH, RATE, FALLING, LONGEST = 128, 1e-3, 0.95, 96
SPACES = "spaces"  # the folder of the checkpoints


class Description(NamedTuple):
    """A text that describes an entity or an aspect.

    Attributes:
        text: a name or a sentence.
        coded: the words whose Bloom code the network predicts.
        keys: the keys of the text in the index.
    """

    text: str
    coded: tuple[str, ...]
    keys: tuple[str, ...]


def entities(
    discourses: TrainingDiscourses, descriptions: Iterable[tuple[Sequence[str], str]] = ()
) -> list[Description]:
    """Return the names of entities, and the sentences that describe the subjects of documents.

    Args:
        discourses: the training documents.
        descriptions: names of further entities, each with a sentence.
    """
    overview = {number for number, names in enumerate(discourses.aspects) if names and aspect_of(names[0]) == OVERVIEW}
    result = []
    for names in discourses.entities:
        result += [_entity(names, name) for name in names]
    for document in discourses.documents:
        for sentence, about, aspects in zip(document.sentences, document.entities, document.aspects, strict=True):
            if about and overview & set(aspects):
                result.append(_entity(discourses.entities[about[0]], sentence))
    for other_names, sentence in descriptions:
        result += [_entity(other_names, text) for text in (*other_names, sentence)]
    return result


def _entity(names: Sequence[str], text: str) -> Description:
    name_keys = tuple(dict.fromkeys(plain_key(name) for name in names))
    return Description(text, name_keys[:1], name_keys)


def aspects(discourses: TrainingDiscourses) -> list[Description]:
    """Return the headings, and the sentences under them."""
    result = []
    heading_keys = [tuple(keys(names[0])) if names else () for names in discourses.aspects]
    heading_words = [tuple(word for key in group for word in key.split("_")) for group in heading_keys]
    for group, words in zip(heading_keys, heading_words, strict=True):
        if words:
            result.append(Description(" ".join(words), words, group))
    for document in discourses.documents:
        for sentence, about in zip(document.sentences, document.aspects, strict=True):
            for number in about[:1]:
                if heading_words[number]:
                    result.append(Description(sentence, heading_words[number], heading_keys[number]))
    return result


def train_codes(
    descriptions: Sequence[Description],
    words: Subwords,
    out: Path,
    kind: str,
    size: int = 128,
    dense: bool = True,
    epochs: int = 5,
    seed: int = 1,
    device: str = "cpu",
    progress: Progress = no_progress,
    balanced: bool = False,
    resume: bool = False,
) -> None:
    """Write `KIND.onnx`, the network, and `KIND.npz`, the mean embedding of each key of the texts.

    The network learns only the bits that occur in a code. The 15,000 headings of the paper use all 1,024 bits. With few
    codes, unused bits would push every output down until all embeddings are saturated and similar. Frequent codes have
    the same effect. With `balanced`, an epoch has as many texts, but about the same number for each code.

    Raises:
        CaprError: there are no texts.
    """
    texts = [item for item in descriptions if words_of(item.text)]
    if not texts:
        raise CaprError(f"there are no texts for the space of {kind}. Fix: name documents with headings and titles.")
    torch.manual_seed(seed)
    model = CodeNetwork(words.dimensions, size, dense)
    for name, weight in model.named_parameters():
        if weight.ndim > 1 and "lstm" not in name:
            nn.init.xavier_uniform_(weight)
    reader = _WordReader(texts, words, device)
    task = CodeTask(model, texts, reader, kind, seed, balanced)
    schedule = Schedule(epochs, BATCH, RATE, patience=0, seed=seed, device=device)
    fit(task, schedule, out / SPACES / kind, resume, progress)
    vectors = _index(model, texts, reader)
    out.mkdir(parents=True, exist_ok=True)
    example = (torch.zeros(1, 4, words.dimensions),)
    path = out / f"{kind}.onnx"
    export_whole(CodeNetworkForExport(model), example, {"words": {1: "words"}}, path, {"embedding": {}})
    names = np.frombuffer("\n".join(vectors).encode(), np.uint8)
    # Written last and atomically: if this file exists, the network is complete.
    arrays.save(out / f"{kind}.npz", names=names, vectors=np.stack(list(vectors.values())))
    shutil.rmtree(out / SPACES, ignore_errors=True)


class CodeTask(TrainingTask):
    """The task of predicting the code of the entity or aspect that a text describes."""

    def __init__(
        self,
        model: CodeNetwork,
        texts: Sequence[Description],
        reader: _WordReader,
        kind: str,
        seed: int,
        balanced: bool,
    ) -> None:
        self.model, self.texts, self.reader = model, texts, reader
        self.stage, self.seed, self.balanced = kind, seed, balanced
        self.codes = {coded: bloom(list(coded)) for coded in {item.coded for item in texts}}
        varied = len(self.codes) > 1
        self.used = torch.stack(list(self.codes.values())).any(0) if varied else torch.ones(BITS, dtype=torch.bool)
        counts = Counter(item.coded for item in texts)
        self.weights = [1 / counts[item.coded] for item in texts]
        self.epoch_steps = -(-len(texts) // BATCH)
        self._epoch: tuple[int, Sequence[Description]] = (-1, ())

    def batch(self, step: int) -> Sequence[Description]:
        epoch, position = divmod(step, self.epoch_steps)
        if self._epoch[0] != epoch:
            rng = random.Random(f"{self.seed} {self.stage} {epoch}")
            count = len(self.texts)
            texts = rng.choices(self.texts, self.weights, k=count) if self.balanced else rng.sample(self.texts, count)
            self._epoch = epoch, texts
        return self._epoch[1][position * BATCH : (position + 1) * BATCH]

    def loss(self, batch: Sequence[Description]) -> Tensor:
        vectors, lengths = self.reader(batch)
        with torch.autocast(vectors.device.type, enabled=False):  # 16 bits are too few for the exponentials of the loss
            outputs = self.model(vectors, lengths)[:, self.used]
            codes = torch.stack([self.codes[item.coded] for item in batch])[:, self.used]
            return bp_mll(outputs, codes.to(outputs.device))

    def settings(self) -> dict[str, Any]:
        return {"texts": len(self.texts), "balanced": self.balanced, "model": repr(self.model)}

    def data_digest(self) -> str:
        return digest_records(map(repr, self.texts))

    def optimizer(self, rate: float) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), rate, weight_decay=1e-5)

    def rate(self, steps: int, warmup: float) -> Rate:
        return decay_by_epoch(FALLING, self.epoch_steps)


class _WordReader:
    """Converts texts to vectors of words, and looks up each word only once."""

    def __init__(self, texts: Iterable[Description], words: Subwords, device: str) -> None:
        self.numbers: dict[str, int] = {}
        self.ids = {item.text: self._ids(item.text) for item in texts}
        self.vectors = torch.from_numpy(np.stack([words.vector(word) for word in self.numbers])).to(device)

    def _ids(self, text: str) -> Tensor:
        return torch.tensor([self.numbers.setdefault(word, len(self.numbers)) for word in words_of(text)])

    def __call__(self, texts: Sequence[Description]) -> tuple[Tensor, Tensor]:
        """Return the vectors (texts, words, dimensions) and the number of words of each text."""
        rows = [self.ids[item.text][:LONGEST] for item in texts]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.vectors.device)
        return self.vectors[ids], torch.tensor([len(row) for row in rows])


@torch.no_grad()
def _index(model: CodeNetwork, texts: Sequence[Description], reader: _WordReader) -> dict[str, Floats]:
    """Return the normalised mean embedding of each key (equation 5, as in the code)."""
    total: dict[str, Floats] = {}
    for begin in range(0, len(texts), BATCH):
        batch = texts[begin : begin + BATCH]
        for item, vector in zip(batch, model.embedding(*reader(batch)).cpu().numpy(), strict=True):
            for key in item.keys:
                total[key] = total[key] + vector if key in total else vector
    return {key: unit(vector) for key, vector in total.items() if key}
