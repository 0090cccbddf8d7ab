"""The tagger: a small network that marks the diseases and drugs of a text, including names outside the vocabulary.

The folder of a tagger has `model.onnx`, `manifest.json`, and `tokenizer.json` (for a transformer) or `trigrams.txt`
(for TASTY). `capr train tagger` makes such a folder; one is built in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError, Span
from capr.runtime.manifest import FILE, Manifest, lacking, parse, read_json
from capr.runtime.tagger_windows import TaggerInputs, TaggerPieces
from capr.runtime.trigrams import Trigrams
from capr.segment import sentences

WORD = re.compile(r"\w+|[^\w\s]")
SHIPPED = Path(str(files("capr").joinpath("weights", "tagger")))
BATCH = 16  # windows per batch
AT_ONCE = 1000  # sentences that are processed together, to limit memory
FIX = "name a folder that `capr train tagger` made"
Scores = NDArray[np.float32]


class TaggedSpan(NamedTuple):
    """A mention that a tagger marked: a span, its type in the training corpora, and a confidence.

    `confidence` is the probability of the least certain word's label.
    """

    span: Span
    type: str
    confidence: float


@dataclass(frozen=True)
class TaggerManifest(Manifest):
    """The manifest of a tagger.

    Attributes:
        architecture: `transformer` or `tasty`.
        labels: `O`, then the B and I labels of each type.
        guidelines: the corpora of the training data, each with the marker token of its annotation guideline.
        pieces: the maximum number of word pieces of a window.
        parameters, sentences, settings: the size and the training of the model, for people.
    """

    name: str = "tagger"
    kind: str = "tagger"
    architecture: str = ""
    labels: Sequence[str] = ()
    guidelines: Mapping[str, str] = field(default_factory=dict)
    pieces: int = 0
    parameters: int = 0
    sentences: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


class Tagger:
    """The tagger of a folder, run on ONNX Runtime.

    >>> tagger = Tagger()
    >>> text = "Metformin was stopped because of lactic acidosis."
    >>> [(tagged.span.of(text), tagged.type) for tagged in tagger.tag(text)]
    [('Metformin', 'Chemical'), ('lactic acidosis', 'Disease')]
    """

    def __init__(self, folder: Path | None = None, guideline: str | None = None, weights: str = "model.onnx") -> None:
        """Load a tagger.

        Args:
            folder: the folder of the tagger; default: the built-in tagger.
            guideline: the corpus whose annotation guideline to follow; default: the first of the manifest.
            weights: the file of the network.
        """
        import onnxruntime  # imported here because both are slow, and training needs neither
        from tokenizers import Tokenizer

        folder = folder or SHIPPED
        self.manifest = self.read_manifest(folder)
        tasty = self.manifest.architecture == "tasty"
        for name in (weights, "trigrams.txt" if tasty else "tokenizer.json"):
            if not (folder / name).is_file():
                raise lacking(folder, "tagger", name, FIX)
        self.labels = list(self.manifest.labels)
        markers = self.manifest.guidelines
        guideline = guideline or next(iter(markers))
        if guideline not in markers:
            raise CaprError(f"{folder} does not know the guideline {guideline!r}. Fix: use {' or '.join(markers)}.")
        self.words: TaggerInputs
        if tasty:
            self.words = Trigrams((folder / "trigrams.txt").read_text("utf-8").split("\n"))
        else:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.words = TaggerPieces(tokenizer, markers[guideline], self.manifest.pieces)
        self.session = onnxruntime.InferenceSession(str(folder / weights), providers=["CPUExecutionProvider"])
        self._allowed = transitions(self.labels)

    @staticmethod
    def read_manifest(folder: Path) -> TaggerManifest:
        """Return the manifest of a tagger's folder."""
        if not (folder / FILE).is_file():
            raise lacking(folder, "tagger", FILE, FIX)
        manifest = parse(TaggerManifest, read_json(folder, FIX), folder / FILE, FIX)
        needed = ("architecture", "labels", "guidelines", "pieces")
        if missing_keys := [name for name in needed if not getattr(manifest, name)]:
            raise CaprError(f"{folder / FILE} lacks {', '.join(missing_keys)}. Fix: {FIX}.")
        return manifest

    def tag(self, text: str, cut: Iterable[Span] | None = None) -> list[TaggedSpan]:
        """Return the diseases and drugs of a text, in the order of the text.

        Args:
            text: a text of any length.
            cut: the sentences of the text, if the caller has them already.
        """
        mentions = []
        spans = iter(sentences(text) if cut is None else cut)
        while part := list(islice(spans, AT_ONCE)):
            words = [[Span(*match.span()) for match in WORD.finditer(text, *span)] for span in part]
            labels = self.label([[word.of(text) for word in sentence] for sentence in words])
            for sentence, labelled in zip(words, labels, strict=True):
                for begin, end, kind in entities([label for label, _ in labelled]):
                    span = Span(sentence[begin].begin, sentence[end - 1].end)
                    mentions.append(TaggedSpan(span, kind, min(probability for _, probability in labelled[begin:end])))
        return mentions

    def label(self, cut: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]:
        """Return the BIO label of every word of consecutive sentences, with its probability."""
        windows = list(self.words.windows(cut))
        order = sorted(range(len(windows)), key=lambda i: len(windows[i].pieces))  # similar lengths need less padding
        labelled: list[list[tuple[str, float]]] = [[] for _ in windows]
        for begin in range(0, len(order), BATCH):
            batch = order[begin : begin + BATCH]
            (scores,) = self.session.run(["scores"], self.words.arrays([windows[i] for i in batch]))
            for row, i in enumerate(batch):
                labelled[i] = self._label_words(scores[row], windows[i].firsts)
        flat = iter([label for window in labelled for label in window])
        return [list(islice(flat, len(sentence))) for sentence in cut]

    def _label_words(self, scores: Scores, firsts: Sequence[int]) -> list[tuple[str, float]]:
        """Return the label of each word with its probability.

        The tokenizer drops some words, such as a zero-width character. Such a word joins an entity that continues
        after it.
        """
        positions = [position for position in firsts if position >= 0]
        logits = scores[positions]  # (words, labels)
        best = decode(logits, self._allowed)
        odds = np.exp(logits - logits.max(1, keepdims=True, initial=-np.inf))
        probabilities = (odds / odds.sum(1, keepdims=True))[np.arange(len(best)), best]
        labelled = list(zip((self.labels[label] for label in best), probabilities.tolist(), strict=True))
        for i, position in enumerate(firsts):
            if position < 0:
                following = labelled[i][0] if i < len(labelled) else "O"
                labelled.insert(i, (following if following.startswith("I-") else "O", 1.0))
        return labelled


@cache
def shipped() -> Tagger:
    """Return the built-in tagger, loaded once."""
    return Tagger()


def transitions(labels: Sequence[str]) -> Scores:
    """Return a table (labels + 1, labels): 0 if the column's label may follow the row's label, else minus infinity.

    The last row is the start of a sentence.
    """
    table = np.zeros((len(labels) + 1, len(labels)), np.float32)
    for j, label in enumerate(labels):
        if label.startswith("I-"):
            table[:, j] = [0 if before[2:] == label[2:] else -np.inf for before in (*labels, "O")]
    return table


def decode(scores: Scores, allowed: Scores) -> list[int]:
    """Return the best sequence of labels in which every I follows a B or I of its type (Viterbi)."""
    if not len(scores):
        return []
    best = scores[0] + allowed[-1]
    backpointers = []
    for row in scores[1:]:
        totals = best[:, None] + allowed[:-1]  # (label before, label)
        backpointers.append(totals.argmax(0))
        best = totals.max(0) + row
    path = [int(best.argmax())]
    for previous in reversed(backpointers):
        path.append(int(previous[path[-1]]))
    return path[::-1]


def entities(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the entities of a BIO-labelled sentence as (first word, last word + 1, type); a stray I begins one.

    >>> entities(["B-D", "I-D", "O", "B-D", "B-D"])
    [(0, 2, 'D'), (3, 4, 'D'), (4, 5, 'D')]
    """
    ranges = []
    begin, kind = 0, ""
    for i, label in enumerate([*labels, "O"]):
        if kind and label != f"I-{kind}":
            ranges.append((begin, i, kind))
            kind = ""
        if label != "O" and not kind:
            begin, kind = i, label[2:]
    return ranges
