"""Trains the query spaces of the paper: a network for entities and one for aspects, and an index of what they know.

Reference: Arnold et al. (CDV), 2020, sections 3 and 5.2, and its released code: sentences that describe an entity, and
sentences under a heading, predict the Bloom code of the one and of the words of the other.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from capr.annotate.aspects import aspect_of, keys
from capr.annotate.names import plain_key
from capr.documents import CaprError
from capr.index import arrays
from capr.index.onnx import Floats
from capr.index.spaces import unit
from capr.index.subwords import Subwords, words_of
from capr.models.codes import BITS, CodeNetwork, Embedding, bloom, bp_mll
from capr.supervise.labels import OVERVIEW
from capr.train.discourses import Discourses
from capr.train.export import export_whole
from capr.train.loop import Report

BATCH, RATE, FALLING, LONGEST = 128, 1e-3, 0.95, 96


class Described(NamedTuple):
    """A text that describes something: what its code is made of, and the keys under which the index knows it."""

    text: str
    coded: tuple[str, ...]
    keys: tuple[str, ...]


def entities(discourses: Discourses, others: Iterable[tuple[Sequence[str], str]] = ()) -> list[Described]:
    """The sentences that describe the subjects of documents, and their names; `others` are names with a sentence."""
    overview = {number for number, names in enumerate(discourses.aspects) if names and aspect_of(names[0]) == OVERVIEW}
    found = []
    for known in discourses.entities:
        found += [_entity(known, name) for name in known]
    for lesson in discourses.lessons:
        for text, about, aspects in zip(lesson.sentences, lesson.entities, lesson.aspects, strict=True):
            if about and overview & set(aspects):
                found.append(_entity(discourses.entities[about[0]], text))
    for names, text in others:
        found += [_entity(names, said) for said in (*names, text)]
    return found


def _entity(names: Sequence[str], text: str) -> Described:
    known = tuple(dict.fromkeys(plain_key(name) for name in names))
    return Described(text, known[:1], known)


def aspects(discourses: Discourses) -> list[Described]:
    """Headings, and the sentences under them."""
    found = []
    parts = [tuple(keys(names[0])) if names else () for names in discourses.aspects]
    coded = [tuple(word for part in some for word in part.split("_")) for some in parts]
    for some, words in zip(parts, coded, strict=True):
        if words:
            found.append(Described(" ".join(words), words, some))
    for lesson in discourses.lessons:
        for text, about in zip(lesson.sentences, lesson.aspects, strict=True):
            for number in about[:1]:
                if coded[number]:
                    found.append(Described(text, coded[number], parts[number]))
    return found


def train_codes(
    described: Sequence[Described], words: Subwords, out: Path, kind: str, size: int = 128, dense: bool = True,
    epochs: int = 5, seed: int = 1, device: str = "cpu", progress: Callable[[Report], None] = lambda report: None,
    balanced: bool = False,
) -> None:  # fmt: skip
    """Writes `KIND.onnx`, the network, and `KIND.npz`, the mean embedding of each key that it knows.

    Only bits that some code has are learned. The paper's 15,000 headings have all 1,024; where there are few codes, the
    bits of none press every output down until all embeddings are saturated, and alike. Frequent codes do the same,
    unless they are `balanced`: then an epoch has as many texts, but of each code about the same number.

    Raises:
        CaprError: nothing is described.
    """
    texts = [one for one in described if words_of(one.text)]
    if not texts:
        raise CaprError(f"there are no texts for the space of {kind}. Fix: name documents with headings and titles.")
    torch.manual_seed(seed)
    model = CodeNetwork(words.dimensions, size, dense).to(device)
    for name, weight in model.named_parameters():
        if weight.ndim > 1 and "lstm" not in name:
            nn.init.xavier_uniform_(weight)
    codes = {coded: bloom(list(coded)) for coded in {one.coded for one in texts}}
    used = torch.stack(list(codes.values())).any(0) if len(codes) > 1 else torch.ones(BITS, dtype=torch.bool)
    often = Counter(one.coded for one in texts)
    weights = [1 / often[one.coded] for one in texts]
    read = _Reader(texts, words, device)
    optimizer = torch.optim.Adam(model.parameters(), RATE, weight_decay=1e-5)
    each = -(-len(texts) // BATCH)
    for epoch in range(epochs):
        draw = random.Random(f"{seed} {kind} {epoch}")
        epoch_texts = draw.choices(texts, weights, k=len(texts)) if balanced else draw.sample(texts, len(texts))
        for group in optimizer.param_groups:
            group["lr"] = RATE * FALLING**epoch
        model.train()
        for place in range(each):
            some = epoch_texts[place * BATCH : (place + 1) * BATCH]
            outputs = model(*read(some))[:, used]
            loss = bp_mll(outputs, torch.stack([codes[one.coded] for one in some])[:, used].to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if place % 10 == 9 or place == each - 1:
                progress(Report(epoch * each + place + 1, epochs * each, loss.item()))
    known = _index(model.eval(), texts, read)
    out.mkdir(parents=True, exist_ok=True)
    example = (torch.zeros(1, 4, words.dimensions),)
    path = out / f"{kind}.onnx"
    export_whole(Embedding(model), example, {"words": {1: "words"}}, path, "embedding", axes_of_output={})
    listed = "\n".join(known).encode()
    # Last, and as a whole: where it is, the network is complete.
    arrays.save(out / f"{kind}.npz", names=np.frombuffer(listed, np.uint8), vectors=np.stack(list(known.values())))


class _Reader:
    """Reads texts as vectors of words; each word is looked up once."""

    def __init__(self, texts: Iterable[Described], words: Subwords, device: str) -> None:
        self.numbers: dict[str, int] = {}
        self.places = {
            one.text: torch.tensor([self.numbers.setdefault(word, len(self.numbers)) for word in words_of(one.text)])
            for one in texts
        }  # fmt: skip
        self.vectors = torch.from_numpy(np.stack([words.vector(word) for word in self.numbers])).to(device)

    def __call__(self, some: Sequence[Described]) -> tuple[Tensor, Tensor]:
        """(texts, words, dimensions), and how many words each text has."""
        rows = [self.places[one.text][:LONGEST] for one in some]
        places = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.vectors.device)
        return self.vectors[places], torch.tensor([len(row) for row in rows])


@torch.no_grad()
def _index(model: CodeNetwork, texts: Sequence[Described], read: _Reader) -> dict[str, Floats]:
    """The mean embedding of each key, of length 1 (equation 5, as in the code)."""
    total: dict[str, Floats] = {}
    for begin in range(0, len(texts), BATCH):
        some = texts[begin : begin + BATCH]
        for one, vector in zip(some, model.embedding(*read(some)).cpu().numpy(), strict=True):
            for key in one.keys:
                total[key] = total[key] + vector if key in total else vector
    return {key: unit(vector) for key, vector in total.items() if key}
