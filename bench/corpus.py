"""Passages, documents, vectors and questions for bench/library.py: real ones, and synthetic ones beyond these."""

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
from capr.index import PassageEntry, PreparedDocument
from capr.index.prepare import prepare
from capr.segment import Passage
from capr.text.digest import content, digest

COLLECTIONS = ("medquad", "wikipedia_diseases", "mtsamples", "e3c_cases", "aci_bench", "pubmedqa", "covid_qa", "openi")
TYPES = ("Discharge summary", "Progress note", "Radiology report", "Consultation", "Health article")
TOGETHER = 10  # passages per document
VISITS = 5  # documents per patient
YEARS = range(2014, 2024)
BANK = 20_000  # real passages whose sentences and annotations make synthetic passages
NEAREST = 10  # results per search
ENOUGH = 0.98  # the recall that an approximate index is tuned to
STRICT, ROUNDED = 1e-6, 5e-4  # the allowed distance of a score from the k-th best; ROUNDED is the noise of 8 bits
MADE_UP = 20_000  # the number of synthetic passages without a data folder


class SourcePassage(NamedTuple):
    """A passage; `position` is its index among all passages of the data, and in an array of their vectors."""

    position: int
    title: str
    heading: str
    text: str


class Times(dict[str, float]):
    """The seconds that each step took."""

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Add the time of the block to that of a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self[step] = self.get(step, 0.0) + time.perf_counter() - start


def say(*words: object) -> None:
    """Print a line of progress."""
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


# --- passages and questions ---


def rows(passages: Path | None, data: Path | None) -> Iterator[SourcePassage]:
    """Yield all passages without duplicates: those of a file, of the data folder, or synthetic ones."""
    source = _read_lines(passages) if passages else _read_data(data) if data else _make_up()
    seen: set[int] = set()
    for position, (title, heading, text) in enumerate(source):
        text = text.strip()
        if text and hash(text) not in seen:
            seen.add(hash(text))
            yield SourcePassage(position, title, heading or "", text)


def _read_lines(file: Path) -> Iterator[tuple[str, str, str]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            id, heading, text = json.loads(line)
            yield " ".join(Path(id).stem.replace("_", " ").split()), heading, text


def _read_data(data: Path) -> Iterator[tuple[str, str, str]]:
    for name in COLLECTIONS:
        for document in _documents(data / name):
            for passage in capr.passages(document, max_words=120):
                yield document.title, passage.heading or "", document[passage.span]


def _documents(folder: Path) -> Iterator[Document]:
    try:
        yield from capr.read(folder, replace=True)
    except (CaprError, OSError) as error:
        say("left out:", error)


def _make_up() -> Iterator[tuple[str, str, str]]:
    """Yield the passages of the samples, then their sentences mixed with words that follow Zipf's law."""
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
            filler = " ".join(draw.choices(words, cum_weights=weights, k=draw.randint(5, 20)))
            parts += [draw.choice(sentences), f"The {name} {filler}."]
        yield name, draw.choice(headings), " ".join(" ".join(parts).split()[:120])


def questions(file: Path | None, data: Path | None, count: int) -> list[str]:
    """Draw `count` questions: of a file, of MedQuAD and COVID-QA in the data folder, or synthetic ones."""
    draw = random.Random(2)
    if file:
        pool = json.loads(file.read_text("utf-8"))
    elif data:
        pool = []
        for name in ("medquad", "covid_qa"):
            for document in _documents(data / name):
                for annotation in document.annotations:
                    pool.append(annotation.value.get("question") or annotation.value.get("heading") or "")
        pool = list(dict.fromkeys(question for question in pool if question.endswith("?")))
    else:
        names = [concept.name for concept in islice(Vocabulary.load(), 5000)]
        pool = [f"What are the {aspect} of {name}?" for aspect in ("symptoms", "causes") for name in names]
    return draw.sample(pool, min(count, len(pool)))


# --- documents ---


@dataclass(frozen=True, slots=True)
class AnnotatedSentence:
    """A sentence with its mentions, whose spans are relative to the start of the sentence."""

    text: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Banked:
    """A real passage that supplies sentences for synthetic passages."""

    heading: str
    aspect: str
    title: str
    sentences: tuple[AnnotatedSentence, ...]


def documents(source: Iterable[SourcePassage], size: int, times: Times) -> Iterator[tuple[PreparedDocument, list[int]]]:
    """Yield documents with about `size` passages in all, and the row of each passage's vector (-1: none).

    capr segments and annotates the real passages. Beyond these, it joins sentences of real passages into synthetic
    passages, which keep the mentions of their sentences.
    """
    finder = annotator(False)
    with times.of("loading the vocabulary"):
        finder.annotate(Document("", "warm up"))
    bank: list[Banked] = []
    passages = number = 0
    remaining = iter(source)
    times["annotated"] = 0
    while passages < size and (group := list(islice(remaining, min(TOGETHER, size - passages)))):
        document, begins = _document(number, group)
        with times.of("annotation and segmentation"):
            prepared_document = prepare(document, finder, digest(document))
        starts = [entry.passage.span.begin for entry in prepared_document.entries]
        sources = np.searchsorted(begins, starts, "right") - 1
        yield prepared_document, [group[i].position for i in sources]
        passages, number = passages + len(prepared_document.entries), number + 1
        if len(bank) < BANK and (size <= 5 * BANK or number % 5 == 0):
            bank += [_bank(document, entry) for entry in prepared_document.entries]
    times["annotated"] = passages
    if passages < size:
        say(f"{passages:,} real passages; the others combine sentences of {len(bank):,} of these")
    draw, seen = random.Random(3), set[int]()
    while passages < size:
        with times.of("making up"):
            prepared_document = _join(number, min(TOGETHER, size - passages), bank, draw, seen)
        yield prepared_document, [-1] * len(prepared_document.entries)
        passages, number = passages + len(prepared_document.entries), number + 1


def metadata(number: int) -> dict[str, str]:
    draw = random.Random(number)
    day = f"{draw.choice(YEARS)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    return {
        "patient": f"p{number // VISITS}",
        "date": day,
        "type": draw.choice(TYPES),
        "source": draw.choice(("ward", "clinic", "library")),
    }


def _document(number: int, rows: list[SourcePassage]) -> tuple[Document, list[int]]:
    """Make a document with passages as its sections; also return the offset where each begins."""
    text, begins, annotations = "", [], []
    for row in rows:
        begins.append(len(text))
        text += f"{row.text}\n\n"
        value = {"heading": row.heading} if row.heading else {}
        annotations.append(Annotation("section", Span(begins[-1], len(text)), value))
    return Document(f"d{number}", text, rows[0].title, metadata(number), tuple(annotations)), begins


def _bank(document: Document, entry: PassageEntry) -> Banked:
    sentences = []
    for span in entry.passage.sentences:
        mentions = [_shift(mention, -span.begin) for mention in entry.mentions if span.covers(mention.span)]
        sentences.append(AnnotatedSentence(" ".join(document[span].split("\n")), tuple(mentions)))
    return Banked(entry.passage.heading or "", entry.aspect, document.title, tuple(sentences))


def _shift(mention: Mention, distance: int) -> Mention:
    def span(old: Span) -> Span:
        return Span(max(0, old.begin + distance), max(0, old.end + distance))

    context = {
        flag: replace(cue, span=cue.span and span(cue.span), scope=span(cue.scope))
        for flag, cue in mention.context.items()
    }
    return replace(mention, span=span(mention.span), context=context)


def _join(number: int, count: int, bank: list[Banked], draw: random.Random, seen: set[int]) -> PreparedDocument:
    """Make a document of synthetic passages, each from the start of a real passage and the end of another."""
    id = f"d{number}"
    text, entries, annotations = "", [], []
    title = ""
    while len(entries) < count:
        first, second = draw.choice(bank), draw.choice(bank)
        head = first.sentences[: draw.randint(1, len(first.sentences))]
        tail = second.sentences[draw.randrange(len(second.sentences)) :]
        key = hash(tuple(sentence.text for sentence in head + tail))
        if key in seen:
            continue
        seen.add(key)
        title = title or first.title
        begin, spans, mentions = len(text), [], []
        for sentence in head + tail:
            mentions += [_shift(mention, len(text)) for mention in sentence.mentions]
            spans.append(Span(len(text), len(text) + len(sentence.text)))
            text += sentence.text + " "
        span = Span(begin, len(text) - 1)
        text = text[:-1] + "\n\n"
        value = {"heading": first.heading} if first.heading else {}
        annotations.append(Annotation("section", Span(begin, len(text)), value))
        passage = Passage(id, len(entries), span, first.heading or None, None, tuple(spans))
        entries.append(PassageEntry(passage, span.of(text), first.aspect, tuple(mentions)))
    document = Document(id, text, title, metadata(number), tuple(annotations))
    return PreparedDocument(document, digest(document), content(document), entries)


# --- vectors ---


class PassageVectors:
    """Real vectors, and for all other passages mixtures of two real vectors with noise."""

    def __init__(self, real: np.ndarray) -> None:
        self.real = real / np.maximum(np.linalg.norm(real, axis=1, keepdims=True), 1e-12)
        self._draw = np.random.default_rng(4)

    def known(self, positions: list[int]) -> int:
        """Return the number of passages with a real vector."""
        return sum(0 <= position < len(self.real) for position in positions)

    def of(self, positions: list[int]) -> np.ndarray:
        """Return the vectors of passages: (positions, dimensions)."""
        draw, count, dimensions = self._draw, len(positions), self.real.shape[1]
        first, second = draw.integers(len(self.real), size=(2, count))
        share = draw.uniform(0.1, 0.5, (count, 1))
        noise = draw.normal(0, 0.2 / dimensions**0.5, (count, dimensions))
        vectors = (1 - share) * self.real[first] + share * self.real[second] + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        rows = np.array(positions)
        known = (rows >= 0) & (rows < len(self.real))
        vectors[known] = self.real[rows[known]]
        return vectors.astype(np.float32)


def real_vectors(files: list[Path], rows: Sequence[SourcePassage], encoded: np.ndarray) -> PassageVectors:
    """Return the vectors of files or, without files, the encoded vectors of the first passages."""
    if files:
        return PassageVectors(np.concatenate([np.load(file) for file in files]).astype(np.float32))
    vectors = np.zeros((rows[-1].position + 1, encoded.shape[1]), np.float32)
    vectors[[row.position for row in rows]] = encoded
    for position in np.flatnonzero(~vectors.any(axis=1)):  # duplicates, which `rows` skipped
        vectors[position] = vectors[position - 1]
    return PassageVectors(vectors)


class Truth:
    """The exact nearest neighbours of queries, from 32-bit vectors."""

    def __init__(self, vectors: np.ndarray, queries: Sequence[np.ndarray]) -> None:
        self.vectors, self.queries = vectors, np.stack(queries)
        best = np.full((len(queries), NEAREST), -1.0, np.float32)
        for begin in range(0, len(vectors), 50_000):
            scores = self.queries @ vectors[begin : begin + 50_000].T
            highest = np.partition(scores, scores.shape[1] - NEAREST, axis=1)[:, -NEAREST:]
            best = np.sort(np.concatenate([best, highest], axis=1), axis=1)[:, -NEAREST:]
        self.least = best[:, 0]

    def recall(self, rows: Sequence[Sequence[int]], tolerance: float) -> float:
        """Return the share of the k nearest neighbours; a neighbour as near as the k-th counts."""
        right = 0
        for query, least, hits in zip(self.queries, self.least, rows, strict=False):
            right += int((self.vectors[list(hits[:NEAREST])] @ query >= least - tolerance).sum()) if len(hits) else 0
        return right / NEAREST / len(rows)

    def recalls(self, rows: Sequence[Sequence[int]]) -> str:
        """Return the rounded and the strict recall, for a table."""
        return f"{self.recall(rows, ROUNDED):.3f} / {self.recall(rows, STRICT):.3f}"

    def tune(self, search: Callable[[int, Any], Sequence[int]], values: Iterable[int]) -> int:
        """Return the first value of an option with enough recall, or the last value."""
        for value in values:
            if self.recall([search(value, vector) for vector in self.queries], ROUNDED) >= ENOUGH:
                break
        return value
