"""A note as the fact finders see it, and the facts that they find."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from capr.annotate.mentions import Annotator, Mention
from capr.documents import Document, Span
from capr.segment import Section, sections, sentences
from capr.text.names import plain_key

PROBLEM_KINDS = ("disease", "symptom")
VAGUE_PROBLEMS = frozenset(
    "injury injuries disease symptom symptoms infection lesion mass finding findings allergy allergies".split()
)
EDGES = " \t\r\n.,;:-–—•*"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a note says, which a question can ask for.

    Attributes:
        kind: a row of questions.tsv, which has the wordings.
        subject: what the question is about, in the words of the question; empty if the kind alone defines the question.
        key: the identity of the subject. Facts of one kind and key have the same question.
        answer: the span of the note that answers.
        other_name: another name of the subject, if it has one.
        certain: False for a possible other answer. If it differs from the certain answer, the question is dropped.
    """

    kind: str
    subject: str
    key: str
    answer: Span
    other_name: str = ""
    certain: bool = True


@dataclass(frozen=True)
class Note:
    """A document with the mentions, sentences and sections that capr finds in it."""

    document: Document
    mentions: list[Mention]

    @classmethod
    def from_document(cls, document: Document, annotator: Annotator) -> Note:
        """Annotate a document."""
        return cls(document, annotator.annotate(document))

    @property
    def text(self) -> str:
        """The text of the document."""
        return self.document.text

    @cached_property
    def sentences(self) -> list[Span]:
        """All sentences, in order."""
        return sentences(self.text)

    @cached_property
    def sections(self) -> list[Section]:
        """All sections, in order."""
        return sections(self.document)

    @cached_property
    def lower_text(self) -> str:
        """The text in lower case, with single blanks."""
        return " ".join(self.text.lower().split())

    def sentence(self, position: int) -> Span:
        """Return the sentence at a position, or the last one before it."""
        index = bisect_right(self.sentences, position, key=lambda span: span.begin) - 1
        return self.sentences[index] if index >= 0 else Span(0, len(self.text))

    def section(self, position: int) -> Section | None:
        """Return the section at a position, or the last one before it."""
        index = bisect_right(self.sections, position, key=lambda section: section.span.begin) - 1
        return self.sections[index] if index >= 0 else None

    def problems(self) -> Iterator[Mention]:
        """Yield the diseases and symptoms that the patient has or had, as far as the note says."""
        excluded = {"negated", "family", "hypothetical", "possible"}
        for mention in self.mentions:
            is_vague = self.document[mention.span].lower() in VAGUE_PROBLEMS
            if mention.kind in PROBLEM_KINDS and not is_vague and not mention.context.keys() & excluded:
                yield mention

    def drugs(self) -> Iterator[Mention]:
        """Yield the drugs that the patient takes or took."""
        for mention in self.mentions:
            if mention.kind == "drug" and not mention.negated and not mention.family:
                yield mention

    def mention_at(self, position: int, kinds: tuple[str, ...]) -> Mention | None:
        """Return the mention of one of the kinds that begins at the position, or None."""
        index = bisect_right(self.mentions, position, key=lambda mention: mention.span.begin) - 1
        mention = self.mentions[index] if index >= 0 else None
        return mention if mention and mention.span.begin == position and mention.kind in kinds else None

    def key(self, mention: Mention) -> str:
        """Return the identity of what a mention names, the same for all its names."""
        return mention.concept.code if mention.concept else plain_key(self.document[mention.span])

    def name(self, mention: Mention) -> str:
        """Return the name in a mention as a question would write it."""
        return normalise_case(self.document[mention.span])

    def fact_about(self, kind: str, mention: Mention, answer: Span, certain: bool = True) -> Fact:
        """Make a fact about what a mention names."""
        name = self.name(mention)
        other_name = mention.concept.name if mention.concept and mention.kind != "symptom" else name
        return Fact(
            kind,
            name,
            self.key(mention),
            answer,
            "" if plain_key(other_name) == plain_key(name) else other_name,
            certain,
        )


def normalise_case(words: str) -> str:
    """Lowercase words except abbreviations and names: `Chest Pain` becomes `chest pain`; `COPD` and `Crohn's` stay.

    >>> normalise_case("Acute\\nRenal failure"), normalise_case("COPD"), normalise_case("HYPERTENSION")
    ('acute renal failure', 'COPD', 'hypertension')
    >>> normalise_case("Crohn's disease"), normalise_case("HbA1c")
    ("Crohn's disease", 'HbA1c')
    """
    return " ".join(map(_normalise_word, words.split()))


def _normalise_word(word: str) -> str:
    if word.isupper() and len(re.sub(r"\W", "", word)) > 5:
        return word.lower()
    return word.lower() if word[1:].islower() and "'" not in word and "’" not in word else word


def trim_span(text: str, begin: int, end: int) -> Span:
    """Strip blanks, bullets and punctuation from both ends of a range, but no brackets or abbreviation periods."""
    while begin < end and text[begin] in EDGES:
        begin += 1
    while begin < end and text[end - 1] in EDGES and not _ends_abbreviation(text, begin, end):
        end -= 1
    return Span(begin, end)


def _ends_abbreviation(text: str, begin: int, end: int) -> bool:
    """Tell whether the last period belongs to an abbreviation: `b.i.d.`, `p.o.`."""
    return text[end - 1] == "." and re.search(r"\b\w\.\w\.$", text[max(begin, end - 6) : end]) is not None


def count_words(text: str, span: Span) -> int:
    """Count the words of a span."""
    return len(span.of(text).split())
