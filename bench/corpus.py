"""Passages, documents, vectors and questions for bench/library.py: real ones, and as many more as are wanted."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import capr
from capr.annotate import Mention, Vocabulary
from capr.annotate.mentions import annotator
from capr.documents import Annotation, CaprError, Document, Span
from capr.index import Entry, Prepared
from capr.index.digest import content, digest
from capr.search.prepare import prepared
from capr.segment import Passage

COLLECTIONS = ("medquad", "wikipedia_diseases", "mtsamples", "e3c_cases", "aci_bench", "pubmedqa", "covid_qa", "openi")
TYPES = ("Discharge summary", "Progress note", "Radiology report", "Consultation", "Health article")
TOGETHER = 10  # passages of a document
VISITS = 5  # documents of a patient
YEARS = range(2014, 2024)
BANK = 20_000  # passages whose sentences and annotations are used again
NEAREST = 10  # passages that a search is asked for
ENOUGH = 0.98  # recall that an approximate index is tuned to
STRICT, ROUNDED = 1e-6, 5e-4  # what a score may fall short of the k-th best; the latter is the noise of 8 bits
MADE_UP = 20_000  # passages that are written where there are no data


class Row(NamedTuple):
    """A passage; `at` is its place among all that were read, to which given vectors refer."""

    at: int
    title: str
    heading: str
    text: str


class Times(dict[str, float]):
    """Seconds by what they were spent on."""

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self[what] = self.get(what, 0.0) + time.perf_counter() - start


def say(*words: object) -> None:
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


# --- passages and questions ---


def rows(passages: Path | None, data: Path | None) -> Iterator[Row]:
    """All passages that can be had, none twice."""
    source = _given(passages) if passages else _read(data) if data else _made_up()
    seen: set[int] = set()
    for at, (title, heading, text) in enumerate(source):
        text = text.strip()
        if text and hash(text) not in seen:
            seen.add(hash(text))
            yield Row(at, title, heading or "", text)


def _given(file: Path) -> Iterator[tuple[str, str, str]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            id, heading, text = json.loads(line)
            yield " ".join(Path(id).stem.replace("_", " ").split()), heading, text


def _read(data: Path) -> Iterator[tuple[str, str, str]]:
    for name in COLLECTIONS:
        for document in _documents(data / name):
            for passage in capr.passages(document, max_words=120):
                yield document.title, passage.heading or "", document[passage.span]


def _documents(folder: Path) -> Iterator[Document]:
    try:
        yield from capr.read(folder, replace=True)
    except (CaprError, OSError) as error:
        say("left out:", error)


def _made_up() -> Iterator[tuple[str, str, str]]:
    """The samples, then their sentences among words as frequent as in a language (Zipf)."""
    draw = random.Random(1)
    sentences: list[str] = []
    headings: list[str] = []
    for document in capr.samples.documents():
        for passage in capr.passages(document, max_words=120):
            yield document.title, passage.heading or "", document[passage.span]
            sentences += [document[span] for span in passage.sentences]
            headings.append(passage.heading or "")
    names = [concept.name for concept in islice(Vocabulary.load(), 5000)]
    words = [f"{draw.choice('bcdfglmnprst')}{draw.choice('aeiou')}{number:x}" for number in range(50_000)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))
    for _ in range(MADE_UP):
        name = draw.choice(names)
        parts = []
        for _ in range(draw.randint(1, 3)):
            drawn = " ".join(draw.choices(words, cum_weights=weights, k=draw.randint(5, 20)))
            parts += [draw.choice(sentences), f"The {name} {drawn}."]
        yield name, draw.choice(headings), " ".join(" ".join(parts).split()[:120])


def questions(file: Path | None, data: Path | None, count: int) -> list[str]:
    """So many questions: given ones, those of MedQuAD and COVID-QA, or made-up ones."""
    draw = random.Random(2)
    if file:
        found = json.loads(file.read_text("utf-8"))
    elif data:
        found = []
        for name in ("medquad", "covid_qa"):
            for document in _documents(data / name):
                for a in document.annotations:
                    found.append(a.value.get("question") or a.value.get("heading") or "")
        found = list(dict.fromkeys(question for question in found if question.endswith("?")))
    else:
        names = [concept.name for concept in islice(Vocabulary.load(), 5000)]
        found = [f"What are the {what} of {name}?" for what in ("symptoms", "causes") for name in names]
    return draw.sample(found, min(count, len(found)))


# --- documents ---


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence with its mentions, which count from its begin."""

    text: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Banked:
    """A passage that others are made of."""

    heading: str
    aspect: str
    title: str
    pieces: tuple[Piece, ...]


def documents(source: Iterable[Row], size: int, times: Times) -> Iterator[tuple[Prepared, list[int]]]:
    """Documents of about so many passages in all, and where the vector of each passage is (-1: nowhere).

    Real passages are cut and annotated by capr. Where there are no more, sentences of some of them are joined to new
    passages, which keep their mentions.
    """
    finder = annotator(False)
    with times.of("loading the vocabulary"):
        finder.annotate(Document("", "warm up"))
    bank: list[Banked] = []
    made = number = 0
    waiting = iter(source)
    times["annotated"] = 0
    while made < size and (some := list(islice(waiting, min(TOGETHER, size - made)))):
        document, begins = _document(number, some)
        with times.of("annotation and segmentation"):
            one = prepared(document, finder, digest(document))
        starts = np.searchsorted(begins, [entry.passage.span.begin for entry in one.entries], "right") - 1
        yield one, [some[i].at for i in starts]
        made, number = made + len(one.entries), number + 1
        if len(bank) < BANK and (size <= 5 * BANK or number % 5 == 0):
            bank += [_banked(document, entry) for entry in one.entries]
    times["annotated"] = made
    if made < size:
        say(f"{made:,} real passages; the others are made of sentences of {len(bank):,} of them")
    draw, seen = random.Random(3), set[int]()
    while made < size:
        with times.of("making up"):
            one = _joined(number, min(TOGETHER, size - made), bank, draw, seen)
        yield one, [-1] * len(one.entries)
        made, number = made + len(one.entries), number + 1


def metadata(number: int) -> dict[str, str]:
    draw = random.Random(number)
    day = f"{draw.choice(YEARS)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    return {
        "patient": f"p{number // VISITS}",
        "date": day,
        "type": draw.choice(TYPES),
        "source": draw.choice(("ward", "clinic", "library")),
    }


def _document(number: int, some: list[Row]) -> tuple[Document, list[int]]:
    """Passages as the sections of one document, and where each begins."""
    text, begins, marks = "", [], []
    for row in some:
        begins.append(len(text))
        text += f"{row.text}\n\n"
        value = {"heading": row.heading} if row.heading else {}
        marks.append(Annotation("section", Span(begins[-1], len(text)), value))
    return Document(f"d{number}", text, some[0].title, metadata(number), tuple(marks)), begins


def _banked(document: Document, entry: Entry) -> Banked:
    pieces = []
    for sentence in entry.passage.sentences:
        inside = [_moved(m, -sentence.begin) for m in entry.mentions if sentence.covers(m.span)]
        pieces.append(Piece(" ".join(document[sentence].split("\n")), tuple(inside)))
    return Banked(entry.passage.heading or "", entry.aspect, document.title, tuple(pieces))


def _moved(mention: Mention, by: int) -> Mention:
    def span(old: Span) -> Span:
        return Span(max(0, old.begin + by), max(0, old.end + by))

    context = {
        flag: replace(cue, span=cue.span and span(cue.span), scope=span(cue.scope))
        for flag, cue in mention.context.items()
    }
    return replace(mention, span=span(mention.span), context=context)


def _joined(number: int, count: int, bank: list[Banked], draw: random.Random, seen: set[int]) -> Prepared:
    """A document of passages that each begin like one and end like another."""
    id = f"d{number}"
    text, entries, marks = "", [], []
    title = ""
    while len(entries) < count:
        first, second = draw.choice(bank), draw.choice(bank)
        head = first.pieces[: draw.randint(1, len(first.pieces))]
        tail = second.pieces[draw.randrange(len(second.pieces)) :]
        key = hash(tuple(piece.text for piece in head + tail))
        if key in seen:
            continue
        seen.add(key)
        title = title or first.title
        begin, sentences, mentions = len(text), [], []
        for piece in head + tail:
            mentions += [_moved(mention, len(text)) for mention in piece.mentions]
            sentences.append(Span(len(text), len(text) + len(piece.text)))
            text += piece.text + " "
        span = Span(begin, len(text) - 1)
        text = text[:-1] + "\n\n"
        marks.append(Annotation("section", Span(begin, len(text)), {"heading": first.heading} if first.heading else {}))
        passage = Passage(id, len(entries), span, first.heading or None, None, tuple(sentences))
        entries.append(Entry(passage, span.of(text), first.aspect, tuple(mentions)))
    document = Document(id, text, title, metadata(number), tuple(marks))
    return Prepared(document, digest(document), content(document), entries)


# --- vectors ---


class Vectors:
    """Real vectors, and mixtures of two real ones with some noise for all other passages."""

    def __init__(self, real: np.ndarray) -> None:
        self.real = real / np.maximum(np.linalg.norm(real, axis=1, keepdims=True), 1e-12)
        self._draw = np.random.default_rng(4)

    def known(self, places: list[int]) -> int:
        """Of how many there is a real one."""
        return sum(0 <= place < len(self.real) for place in places)

    def of(self, places: list[int]) -> np.ndarray:
        draw, count, dimensions = self._draw, len(places), self.real.shape[1]
        one, other = draw.integers(len(self.real), size=(2, count))
        share = draw.uniform(0.1, 0.5, (count, 1))
        noise = draw.normal(0, 0.2 / dimensions**0.5, (count, dimensions))
        vectors = (1 - share) * self.real[one] + share * self.real[other] + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        at = np.array(places)
        known = (at >= 0) & (at < len(self.real))
        vectors[known] = self.real[at[known]]
        return vectors.astype(np.float32)


def real_vectors(files: list[Path], rows: Sequence[Row], encoded: np.ndarray) -> Vectors:
    """The given vectors, or those of the first passages."""
    if files:
        return Vectors(np.concatenate([np.load(file) for file in files]).astype(np.float32))
    found = np.zeros((rows[-1].at + 1, encoded.shape[1]), np.float32)
    found[[row.at for row in rows]] = encoded
    for at in np.flatnonzero(~found.any(axis=1)):  # repeated passages, which were left out
        found[at] = found[at - 1]
    return Vectors(found)


class Truth:
    """The exact neighbours, by float vectors."""

    def __init__(self, vectors: np.ndarray, asked: Sequence[np.ndarray]) -> None:
        self.vectors, self.asked = vectors, np.stack(asked)
        best = np.full((len(asked), NEAREST), -1.0, np.float32)
        for begin in range(0, len(vectors), 50_000):
            scores = self.asked @ vectors[begin : begin + 50_000].T
            both = np.concatenate([best, np.partition(scores, scores.shape[1] - NEAREST, axis=1)[:, -NEAREST:]], axis=1)
            best = np.sort(both, axis=1)[:, -NEAREST:]
        self.least = best[:, 0]

    def recall(self, rows: Sequence[Sequence[int]], short: float) -> float:
        """The share of the k best; whoever is as near as the last of them counts as one of them."""
        right = 0
        for query, least, found in zip(self.asked, self.least, rows, strict=False):
            right += int((self.vectors[list(found[:NEAREST])] @ query >= least - short).sum()) if len(found) else 0
        return right / NEAREST / len(rows)

    def told(self, rows: Sequence[Sequence[int]]) -> str:
        return f"{self.recall(rows, ROUNDED):.3f} / {self.recall(rows, STRICT):.3f}"

    def tuned(self, search: Callable[[int, Any], Sequence[int]], values: Iterable[int]) -> int:
        """The first value of an option with which enough is found."""
        for value in values:
            if self.recall([search(value, vector) for vector in self.asked], ROUNDED) >= ENOUGH:
                break
        return value
