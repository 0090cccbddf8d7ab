"""The tagger: a small network marks the diseases and drugs of a text, also those that no list of names foresees.

A tagger is a folder: `model.onnx`, `manifest.json` and what its kind of network needs to read words (`tokenizer.json`
for a transformer, `trigrams.txt` for TASTY). `capr train tagger` makes one; one ships with capr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from capr.annotate.trigrams import Trigrams
from capr.annotate.windows import Pieces, Words
from capr.documents import CaprError, Span
from capr.segment import sentences

WORD = re.compile(r"\w+|[^\w\s]")
SHIPPED = Path(str(files("capr").joinpath("weights", "tagger")))
BATCH = 16  # windows that the network sees at once
AT_ONCE = 1000  # sentences that are held in memory
FIX = "name a folder that `capr train tagger` made"
Scores = NDArray[np.float32]


class Tagged(NamedTuple):
    """What a tagger found: a range of the text, a type of the corpora it was trained on, and how sure it is.

    `confidence` is the probability of the least certain word's label.
    """

    span: Span
    type: str
    confidence: float


class Tagger:
    """Runs a tagger's folder on ONNX Runtime.

    >>> tagger = Tagger()
    >>> text = "Metformin was stopped because of lactic acidosis."
    >>> [(tagged.span.of(text), tagged.type) for tagged in tagger.tag(text)]
    [('Metformin', 'Chemical'), ('lactic acidosis', 'Disease')]
    """

    def __init__(self, folder: Path | None = None, guideline: str | None = None, weights: str = "model.onnx") -> None:
        """Loads a tagger.

        Args:
            folder: the one that ships if not given.
            guideline: the corpus whose idea of an entity to follow; the first one it learned from if not given.
            weights: the file of the network.
        """
        folder = folder or SHIPPED
        self.manifest = read_manifest(folder)
        tasty = self.manifest["architecture"] == "tasty"
        for name in (weights, "trigrams.txt" if tasty else "tokenizer.json"):
            if not (folder / name).is_file():
                raise CaprError(f"{folder} is not a tagger: it has no {name}. Fix: {FIX}.")
        self.labels: list[str] = self.manifest["labels"]
        markers: dict[str, str] = self.manifest["guidelines"]
        chosen = guideline or next(iter(markers))
        if chosen not in markers:
            raise CaprError(f"{folder} does not know the guideline {chosen!r}. Fix: use {' or '.join(markers)}.")
        self.words: Words
        if tasty:
            self.words = Trigrams((folder / "trigrams.txt").read_text("utf-8").split("\n"))
        else:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.words = Pieces(tokenizer, markers[chosen], self.manifest["pieces"])
        self.session = onnxruntime.InferenceSession(str(folder / weights), providers=["CPUExecutionProvider"])
        self._allowed = transitions(self.labels)

    def tag(self, text: str, cut: Iterable[Span] | None = None) -> list[Tagged]:
        """The diseases and drugs of a text, in its order.

        Args:
            text: of any length.
            cut: its sentences, where the caller has them already.
        """
        found = []
        spans = iter(sentences(text) if cut is None else cut)
        while part := list(islice(spans, AT_ONCE)):
            words = [[Span(*match.span()) for match in WORD.finditer(text, *span)] for span in part]
            labels = self.label([[word.of(text) for word in sentence] for sentence in words])
            for sentence, named in zip(words, labels, strict=True):
                for begin, end, kind in entities([label for label, _ in named]):
                    span = Span(sentence[begin].begin, sentence[end - 1].end)
                    found.append(Tagged(span, kind, min(probability for _, probability in named[begin:end])))
        return found

    def label(self, cut: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]:
        """The BIO label of every word of consecutive sentences, and its probability."""
        windows = list(self.words.windows(cut))
        order = sorted(range(len(windows)), key=lambda i: len(windows[i].pieces))  # of like length, so little padding
        labelled: list[list[tuple[str, float]]] = [[] for _ in windows]
        for begin in range(0, len(order), BATCH):
            chosen = order[begin : begin + BATCH]
            (scores,) = self.session.run(["scores"], self.words.arrays([windows[i] for i in chosen]))
            for row, i in enumerate(chosen):
                labelled[i] = self._best(scores[row], windows[i].firsts)
        flat = iter([label for window in labelled for label in window])
        return [list(islice(flat, len(sentence))) for sentence in cut]

    def _best(self, scores: Scores, firsts: Sequence[int]) -> list[tuple[str, float]]:
        """The label of each word and its probability.

        A word that the network cannot see, such as a zero-width character, goes with an entity that goes on after it.
        """
        seen = [position for position in firsts if position >= 0]
        rows = scores[seen]  # (words, labels)
        best = decode(rows, self._allowed)
        chances = np.exp(rows - rows.max(1, keepdims=True, initial=-np.inf))
        chances = (chances / chances.sum(1, keepdims=True))[np.arange(len(best)), best]
        named = list(zip((self.labels[label] for label in best), chances.tolist(), strict=True))
        for i, position in enumerate(firsts):
            if position < 0:
                following = named[i][0] if i < len(named) else "O"
                named.insert(i, (following if following.startswith("I-") else "O", 1.0))
        return named


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a program must know of a tagger: its architecture, its labels, its guidelines and their markers."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    except FileNotFoundError as error:
        raise CaprError(f"{folder} is not a tagger: it has no manifest.json. Fix: {FIX}.") from error
    except ValueError as error:
        raise CaprError(f"{folder}/manifest.json is not JSON ({error}). Fix: {FIX}.") from error
    needed = ("architecture", "labels", "guidelines", "pieces")
    if not isinstance(manifest, dict) or any(not manifest.get(name) for name in needed):
        raise CaprError(f"{folder}/manifest.json lacks one of {', '.join(needed)}. Fix: {FIX}.")
    return manifest


@cache
def shipped() -> Tagger:
    """The tagger that ships with capr, loaded once."""
    return Tagger()


def transitions(labels: Sequence[str]) -> Scores:
    """(labels + 1, labels): 0 where a label may follow another (or the start, the last row), else minus infinity."""
    table = np.zeros((len(labels) + 1, len(labels)), np.float32)
    for j, label in enumerate(labels):
        if label.startswith("I-"):
            table[:, j] = [0 if before[2:] == label[2:] else -np.inf for before in (*labels, "O")]
    return table


def decode(scores: Scores, allowed: Scores) -> list[int]:
    """The best sequence of labels in which every I follows a B or I of its type (Viterbi)."""
    if not len(scores):
        return []
    best = scores[0] + allowed[-1]
    back = []
    for row in scores[1:]:
        reached = best[:, None] + allowed[:-1]  # (before, label)
        back.append(reached.argmax(0))
        best = reached.max(0) + row
    path = [int(best.argmax())]
    for sources in reversed(back):
        path.append(int(sources[path[-1]]))
    return path[::-1]


def entities(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """The entities of a BIO-labelled sentence as (first word, last word + 1, type); a stray I begins one.

    >>> entities(["B-D", "I-D", "O", "B-D", "B-D"])
    [(0, 2, 'D'), (3, 4, 'D'), (4, 5, 'D')]
    """
    found = []
    begin, kind = 0, ""
    for i, label in enumerate([*labels, "O"]):
        if kind and label != f"I-{kind}":
            found.append((begin, i, kind))
            kind = ""
        if label != "O" and not kind:
            begin, kind = i, label[2:]
    return found
