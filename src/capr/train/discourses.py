"""What a discourse model learns from: the sentences of documents, each with its structure and what it is about.

Reference: CDV, equation 15: a sentence is about the subject of its document and what it links to or mentions itself,
and about what the headings above it say. It can be kept in a file, so that a machine that trains needs no documents.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capr.annotate.aspects import aspect_of, aspects, cued, keys
from capr.annotate.query import heading
from capr.documents import CaprError, Document
from capr.segment import sentences, structure
from capr.supervise.labels import Labeller

FEWEST = 8  # aspects
FORMAT = "capr discourses 1"


@dataclass(frozen=True)
class Lesson:
    """A document.

    Attributes:
        id: of the document.
        sentences: their texts.
        flags: seven of each sentence; see `capr.segment.structure`.
        entities: of each sentence, the numbers of what it is about; none where that is not known.
        aspects: likewise.
        passages: of each sentence, the number of its labelled passage; -1 outside of all.
    """

    id: str
    sentences: list[str]
    flags: list[list[int]]
    entities: list[list[int]]
    aspects: list[list[int]]
    passages: list[int]


@dataclass
class Discourses:
    """Documents, and the names of what their sentences are about.

    Attributes:
        lessons: the documents.
        entities: for each entity its names, the usual one first.
        aspects: for each aspect the headings that mean it, the usual one first.
    """

    lessons: list[Lesson] = field(default_factory=list)
    entities: list[list[str]] = field(default_factory=list)
    aspects: list[list[str]] = field(default_factory=list)

    @classmethod
    def read(cls, documents: Iterable[Document], labeller: Labeller) -> Discourses:
        """Labels the sentences of documents; what the labeller leaves out has no labels."""
        found = _Reader(labeller)
        for document in documents:
            found.add(document)
        return cls(found.lessons, found.entities.names, found.aspects.names).with_usual_aspects()

    def with_usual_aspects(self, least: int = 3) -> Discourses:
        """The same without the aspects of fewer documents, of which there are many; in a small collection with all."""
        count = Counter(
            number for lesson in self.lessons for number in {one for some in lesson.aspects for one in some}
        )
        kept = [number for number in range(len(self.aspects)) if count[number] >= least]
        if len(kept) < FEWEST:
            return self
        new = {number: place for place, number in enumerate(kept)}
        lessons = [
            replace(lesson, aspects=[[new[one] for one in some if one in new] for some in lesson.aspects])
            for lesson in self.lessons
        ]
        return Discourses(lessons, self.entities, [self.aspects[number] for number in kept])

    @property
    def texts(self) -> Iterable[str]:
        """The sentences that have labels; those of a test have none."""
        for lesson in self.lessons:
            for text, passage in zip(lesson.sentences, lesson.passages, strict=True):
                if passage >= 0:
                    yield text

    def split(self, share: float, seed: int) -> tuple[Discourses, Discourses]:
        """Documents to learn from, and a share of them to validate on."""
        order = list(range(len(self.lessons)))
        random.Random(f"{seed} split").shuffle(order)
        held = set(order[: max(1, round(share * len(order)))]) if len(order) > 1 else set()
        parts = [[lesson for place, lesson in enumerate(self.lessons) if (place in held) == kept] for kept in (0, 1)]
        return Discourses(parts[0], self.entities, self.aspects), Discourses(parts[1], self.entities, self.aspects)

    def save(self, path: Path) -> None:
        """Writes a compressed file: names on its first line, then a document a line."""
        part = path.with_name(path.name + ".part")
        with gzip.open(part, "wt", encoding="utf-8") as file:
            head = {"format": FORMAT, "entities": self.entities, "aspects": self.aspects}
            file.write(json.dumps(head, ensure_ascii=False) + "\n")
            for lesson in self.lessons:
                file.write(json.dumps(vars(lesson), ensure_ascii=False) + "\n")
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Discourses:
        """Reads what `save` has written."""
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                head: dict[str, Any] = json.loads(file.readline())
                if head.get("format") != FORMAT:
                    raise ValueError(f"it is no {FORMAT}")
                return cls([Lesson(**json.loads(line)) for line in file], head["entities"], head["aspects"])
        except (OSError, ValueError, TypeError, KeyError, EOFError, AttributeError) as error:
            fix = "make it again from the documents, without --resume"
            raise CaprError(f"{path} cannot be read ({error}). Fix: {fix}.") from error


class _Numbered:
    """Things by identity, with a number and names each."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self._numbers: dict[str, int] = {}

    def number(self, identity: str, *names: str) -> int:
        if identity not in self._numbers:
            self._numbers[identity] = len(self.names)
            self.names.append([])
        number = self._numbers[identity]
        known = self.names[number]
        known += [name for name in dict.fromkeys(names) if name.strip() and name not in known]
        return number


class _Reader:
    """Documents to lessons."""

    def __init__(self, labeller: Labeller) -> None:
        self.labeller = labeller
        self.lessons: list[Lesson] = []
        self.entities, self.aspects = _Numbered(), _Numbered()

    def add(self, document: Document) -> None:
        labelled = sorted(self.labeller.labels(document), key=lambda labels: labels.span)
        if not labelled:
            return  # held out as a whole, or without headings
        spans = sentences(document.text)
        lesson = Lesson(
            document.id, [document[span] for span in spans], [list(flags) for flags in structure(document.text, spans)],
            [[] for _ in spans], [[] for _ in spans], [-1] * len(spans),
        )  # fmt: skip
        begins = [labels.span.begin for labels in labelled]
        for place, (span, text) in enumerate(zip(spans, lesson.sentences, strict=True)):
            passage = bisect_right(begins, span.begin) - 1
            if passage < 0 or span.begin >= labelled[passage].span.end:
                continue
            labels = labelled[passage]
            lesson.passages[place] = passage
            said = text.lower()
            for first, (identity, words) in enumerate(labels.entities):
                subject = first == 0 and _says(labels.title.lower(), words.lower())
                if subject or _says(said, words.lower()):
                    names = (labels.title, *labels.names) if subject and words == labels.title else ()
                    lesson.entities[place].append(self.entities.number(identity, words, *names))
            shown = cued(text)
            above = {aspect_of(part) for part in labels.heading.split(" | ")}
            for name, words in labels.aspects:
                if name in above or name in shown or len(labels.aspects) == 1:
                    lesson.aspects[place] += self._aspects(name, words)
        self.lessons.append(lesson)

    def _aspects(self, name: str, words: str) -> list[int]:
        """The aspect by its number; of a heading that is not known, each of its parts."""
        if name in aspects():
            return [self.aspects.number(name, heading(name), words, name, *aspects()[name].synonyms)]
        parts = {aspect_of(key.replace("_", " ")): key.replace("_", " ") for key in keys(words)}
        found = []
        for part, said in parts.items():
            others = (part, *aspects()[part].synonyms) if part in aspects() else ()
            found.append(self.aspects.number(part, heading(part), said, *others))
        return found


def _says(text: str, words: str) -> bool:
    """Whether a text has these words, and not only letters of others: `also` does not say `als`."""
    return words in text and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def passages_of(lesson: Lesson) -> dict[int, Sequence[int]]:
    """The sentences of each labelled passage, by their places."""
    found: dict[int, list[int]] = {}
    for place, passage in enumerate(lesson.passages):
        if passage >= 0:
            found.setdefault(passage, []).append(place)
    return dict(found)
