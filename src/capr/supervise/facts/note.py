"""A note as the finders of facts see it, and what they find."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from capr.annotate.mentions import Annotator, Mention
from capr.annotate.names import plain_key
from capr.documents import Document, Span
from capr.segment import Section, sections, sentences

PROBLEMS = ("disease", "symptom")
VAGUE = frozenset(
    "injury injuries disease symptom symptoms infection lesion mass finding findings allergy allergies".split()
)
EDGES = " \t\r\n.,;:-–—•*"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a note says, which can be asked for.

    Attributes:
        kind: of questions.tsv, which has the wordings.
        subject: what is asked about, as the question names it; empty where the kind says it all.
        key: the identity of the subject: facts of one kind and key have the same question.
        answer: the words of the note.
        also: another name of the subject, if it has one.
        sure: False for what may be another answer: if it says something else, nothing is asked.
    """

    kind: str
    subject: str
    key: str
    answer: Span
    also: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Note:
    """A document with what `annotate` and `segment` find in it."""

    document: Document
    mentions: list[Mention]

    @classmethod
    def of(cls, document: Document, annotator: Annotator) -> Note:
        """The note of a document."""
        return cls(document, annotator.annotate(document))

    @property
    def text(self) -> str:
        """Of the document."""
        return self.document.text

    @cached_property
    def sentences(self) -> list[Span]:
        """All of them, in order."""
        return sentences(self.text)

    @cached_property
    def sections(self) -> list[Section]:
        """All of them, in order."""
        return sections(self.document)

    @cached_property
    def lower(self) -> str:
        """The text in lower case, with single blanks."""
        return " ".join(self.text.lower().split())

    def sentence(self, position: int) -> Span:
        """The sentence at a position, or the last before it."""
        at = bisect_right(self.sentences, position, key=lambda span: span.begin) - 1
        return self.sentences[at] if at >= 0 else Span(0, len(self.text))

    def section(self, position: int) -> Section | None:
        """The section at a position."""
        at = bisect_right(self.sections, position, key=lambda section: section.span.begin) - 1
        return self.sections[at] if at >= 0 else None

    def problems(self) -> Iterator[Mention]:
        """Diseases and symptoms that the patient has or had, as far as the note says."""
        without = {"negated", "family", "hypothetical", "possible"}
        for mention in self.mentions:
            vague = self.document[mention.span].lower() in VAGUE
            if mention.kind in PROBLEMS and not vague and not mention.context.keys() & without:
                yield mention

    def drugs(self) -> Iterator[Mention]:
        """Drugs that the patient takes or took."""
        for mention in self.mentions:
            if mention.kind == "drug" and not mention.negated and not mention.family:
                yield mention

    def starting_at(self, position: int, kinds: tuple[str, ...]) -> Mention | None:
        """The mention that begins there."""
        at = bisect_right(self.mentions, position, key=lambda mention: mention.span.begin) - 1
        found = self.mentions[at] if at >= 0 else None
        return found if found and found.span.begin == position and found.kind in kinds else None

    def key(self, mention: Mention) -> str:
        """The identity of what is mentioned, under whatever name."""
        return mention.concept.code if mention.concept else plain_key(self.document[mention.span])

    def name(self, mention: Mention) -> str:
        """What is mentioned, in the words of the note as a question would write them."""
        return plain(self.document[mention.span])

    def about(self, kind: str, mention: Mention, answer: Span, sure: bool = True) -> Fact:
        """A fact about what is mentioned."""
        name = self.name(mention)
        known = mention.concept.name if mention.concept and mention.kind != "symptom" else name
        return Fact(kind, name, self.key(mention), answer, "" if plain_key(known) == plain_key(name) else known, sure)


def plain(words: str) -> str:
    """Words in lower case, but for abbreviations and names: `Chest Pain` is `chest pain`, `COPD` and `Crohn's` stay.

    >>> plain("Acute\\nRenal failure"), plain("COPD"), plain("HYPERTENSION"), plain("Crohn's disease"), plain("HbA1c")
    ('acute renal failure', 'COPD', 'hypertension', "Crohn's disease", 'HbA1c')
    """
    return " ".join(map(_plain_word, words.split()))


def _plain_word(word: str) -> str:
    if word.isupper() and len(re.sub(r"\W", "", word)) > 5:
        return word.lower()
    return word.lower() if word[1:].islower() and "'" not in word and "’" not in word else word


def trimmed(text: str, begin: int, end: int) -> Span:
    """A range without blanks, bullets and punctuation at its ends; a bracket or period that belongs to it stays."""
    while begin < end and text[begin] in EDGES:
        begin += 1
    while begin < end and text[end - 1] in EDGES and not _abbreviated(text, begin, end):
        end -= 1
    return Span(begin, end)


def _abbreviated(text: str, begin: int, end: int) -> bool:
    """Whether the last period is part of the word: `b.i.d.`, `p.o.`."""
    return text[end - 1] == "." and re.search(r"\b\w\.\w\.$", text[max(begin, end - 6) : end]) is not None


def words_in(text: str, span: Span) -> int:
    """How many words a range has."""
    return len(span.of(text).split())
