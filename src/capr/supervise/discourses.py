"""The training data of a discourse model: the sentences of documents, each with its structure and its subjects.

Reference: CDV, equation 15. A sentence is about the subject of its document, about what it links to or mentions, and
about what the headings above it say. The data fit in a file, so a machine that trains needs no documents.
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

from capr.documents import CaprError, Document
from capr.segment import sentences, structure
from capr.segment.aspects import aspect_of, aspects, cued, heading, keys
from capr.supervise.labels import Labeller

MIN_ASPECTS = 8
FORMAT = "capr discourses 1"


@dataclass(frozen=True)
class LabelledDocument:
    """A document with the labels of its sentences.

    Attributes:
        id: the id of the document.
        sentences: the texts of its sentences.
        flags: seven flags for each sentence; see `capr.segment.structure`.
        entities: for each sentence, the numbers of the entities that it is about; empty where these are unknown.
        aspects: for each sentence, the numbers of its aspects; empty where these are unknown.
        passages: for each sentence, the number of its labelled passage; -1 outside of all passages.
    """

    id: str
    sentences: list[str]
    flags: list[list[int]]
    entities: list[list[int]]
    aspects: list[list[int]]
    passages: list[int]


@dataclass
class TrainingDiscourses:
    """Documents, and the names of what their sentences are about.

    Attributes:
        documents: the documents.
        entities: for each entity its names, the usual one first.
        aspects: for each aspect the headings that mean it, the usual one first.
    """

    documents: list[LabelledDocument] = field(default_factory=list)
    entities: list[list[str]] = field(default_factory=list)
    aspects: list[list[str]] = field(default_factory=list)

    @classmethod
    def read(cls, documents: Iterable[Document], labeller: Labeller) -> TrainingDiscourses:
        """Label the sentences of documents; sentences that the labeller skips get no labels."""
        maker = _DocumentLabeller(labeller)
        for document in documents:
            maker.add(document)
        return cls(maker.documents, maker.entities.names, maker.aspects.names).with_usual_aspects()

    def with_usual_aspects(self, min_documents: int = 3) -> TrainingDiscourses:
        """Drop the aspects of fewer than `min_documents` documents, because there are many such aspects.

        A small collection keeps all aspects.
        """
        counts = Counter(
            number
            for document in self.documents
            for number in {aspect for sentence_aspects in document.aspects for aspect in sentence_aspects}
        )
        usual = [number for number in range(len(self.aspects)) if counts[number] >= min_documents]
        if len(usual) < MIN_ASPECTS:
            return self
        new_numbers = {number: position for position, number in enumerate(usual)}
        documents = [
            replace(
                document,
                aspects=[
                    [new_numbers[aspect] for aspect in sentence_aspects if aspect in new_numbers]
                    for sentence_aspects in document.aspects
                ],
            )
            for document in self.documents
        ]
        return TrainingDiscourses(documents, self.entities, [self.aspects[number] for number in usual])

    @property
    def texts(self) -> Iterable[str]:
        """The labelled sentences. Held-out sentences have no labels."""
        for document in self.documents:
            for text, passage in zip(document.sentences, document.passages, strict=True):
                if passage >= 0:
                    yield text

    def split(self, share: float, seed: int) -> tuple[TrainingDiscourses, TrainingDiscourses]:
        """Split off a share of the documents for validation; the first part is for training."""
        order = list(range(len(self.documents)))
        random.Random(f"{seed} split").shuffle(order)
        held_out = set(order[: max(1, round(share * len(order)))]) if len(order) > 1 else set()
        parts = [
            [document for position, document in enumerate(self.documents) if (position in held_out) == is_held_out]
            for is_held_out in (0, 1)
        ]
        return TrainingDiscourses(parts[0], self.entities, self.aspects), TrainingDiscourses(
            parts[1], self.entities, self.aspects
        )

    def save(self, path: Path) -> None:
        """Write a compressed file: the names on its first line, then one document a line."""
        part = path.with_name(path.name + ".part")
        with gzip.open(part, "wt", encoding="utf-8") as file:
            header = {"format": FORMAT, "entities": self.entities, "aspects": self.aspects}
            file.write(json.dumps(header, ensure_ascii=False) + "\n")
            for document in self.documents:
                file.write(json.dumps(vars(document), ensure_ascii=False) + "\n")
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> TrainingDiscourses:
        """Read a file that `save` wrote."""
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                header: dict[str, Any] = json.loads(file.readline())
                if header.get("format") != FORMAT:
                    raise ValueError(f"its format is not {FORMAT!r}")
                return cls(
                    [LabelledDocument(**json.loads(line)) for line in file], header["entities"], header["aspects"]
                )
        except (OSError, ValueError, TypeError, KeyError, EOFError, AttributeError) as error:
            fix = "make it again from the documents, without --resume"
            raise CaprError(f"{path} cannot be read ({error}). Fix: {fix}.") from error


class _NumberedNames:
    """Gives each identity a number, and collects its names."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self._numbers: dict[str, int] = {}

    def number(self, identity: str, *names: str) -> int:
        if identity not in self._numbers:
            self._numbers[identity] = len(self.names)
            self.names.append([])
        number = self._numbers[identity]
        known_names = self.names[number]
        known_names += [name for name in dict.fromkeys(names) if name.strip() and name not in known_names]
        return number


class _DocumentLabeller:
    """Labels the sentences of documents, and numbers their entities and aspects."""

    def __init__(self, labeller: Labeller) -> None:
        self.labeller = labeller
        self.documents: list[LabelledDocument] = []
        self.entities, self.aspects = _NumberedNames(), _NumberedNames()

    def add(self, document: Document) -> None:
        labelled_passages = sorted(self.labeller.labels(document), key=lambda labels: labels.span)
        if not labelled_passages:
            return  # the document is held out or has no headings
        spans = sentences(document.text)
        labelled = LabelledDocument(
            document.id,
            [document[span] for span in spans],
            [list(flags) for flags in structure(document.text, spans)],
            [[] for _ in spans],
            [[] for _ in spans],
            [-1] * len(spans),
        )
        begins = [labels.span.begin for labels in labelled_passages]
        for position, (span, text) in enumerate(zip(spans, labelled.sentences, strict=True)):
            passage = bisect_right(begins, span.begin) - 1
            if passage < 0 or span.begin >= labelled_passages[passage].span.end:
                continue
            labels = labelled_passages[passage]
            labelled.passages[position] = passage
            lower_text = text.lower()
            for rank, (identity, words) in enumerate(labels.entities):
                is_subject = rank == 0 and _contains_words(labels.title.lower(), words.lower())
                if is_subject or _contains_words(lower_text, words.lower()):
                    names = (labels.title, *labels.names) if is_subject and words == labels.title else ()
                    labelled.entities[position].append(self.entities.number(identity, words, *names))
            cued_aspects = cued(text)
            heading_aspects = {aspect_of(part) for part in labels.heading.split(" | ")}
            for name, words in labels.aspects:
                if name in heading_aspects or name in cued_aspects or len(labels.aspects) == 1:
                    labelled.aspects[position] += self._aspect_numbers(name, words)
        self.documents.append(labelled)

    def _aspect_numbers(self, name: str, words: str) -> list[int]:
        """Number the aspect; for an unknown heading, number each of its parts."""
        if name in aspects():
            return [self.aspects.number(name, heading(name), words, name, *aspects()[name].synonyms)]
        parts = {aspect_of(key.replace("_", " ")): key.replace("_", " ") for key in keys(words)}
        numbers = []
        for part, part_words in parts.items():
            synonyms = (part, *aspects()[part].synonyms) if part in aspects() else ()
            numbers.append(self.aspects.number(part, heading(part), part_words, *synonyms))
        return numbers


def _contains_words(text: str, words: str) -> bool:
    """Tell whether a text contains these words as whole words: `also` does not contain `als`."""
    return words in text and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def passages_of(document: LabelledDocument) -> dict[int, Sequence[int]]:
    """Map each labelled passage to the positions of its sentences."""
    positions: dict[int, list[int]] = {}
    for position, passage in enumerate(document.passages):
        if passage >= 0:
            positions.setdefault(passage, []).append(position)
    return dict(positions)
