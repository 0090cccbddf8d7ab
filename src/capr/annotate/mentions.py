"""Mentions: the diseases, symptoms and drugs of a document, what they mean, and in what context they stand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from capr.annotate.abbreviations import definitions
from capr.annotate.aspects import aspect_of, aspects
from capr.annotate.concept import Concept
from capr.annotate.context import FLAGS, Cue, context
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.names import is_ordinary
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Document, Span
from capr.segment import Section, sections, sentences

if TYPE_CHECKING:
    from capr.annotate.tagger import Tagged, Tagger

Item = TypeVar("Item")
CERTAIN = 0.9  # as sure the tagger has to be of a name that the vocabulary does not have
KINDS = {"Disease": "disease", "Chemical": "drug"}  # what the tagger's types mean


@dataclass(frozen=True, slots=True)
class Mention:
    """A disease, symptom or drug that a text speaks of.

    Attributes:
        span: where.
        kind: `disease`, `symptom` or `drug`, or a kind of a user's vocabulary.
        concept: what it means; None where the vocabulary knows no part of it.
        found_by: `vocabulary`, `tagger`, or both.
        context: the cue of each property that it has: negated, possible, hypothetical, historical, family.
    """

    span: Span
    kind: str
    concept: Concept | None
    found_by: tuple[str, ...]
    context: Mapping[str, Cue] = field(default_factory=dict)

    @property
    def negated(self) -> bool:
        """The text says that it is not there."""
        return "negated" in self.context

    @property
    def possible(self) -> bool:
        """The text is not sure of it."""
        return "possible" in self.context

    @property
    def hypothetical(self) -> bool:
        """The text speaks of a case that may come."""
        return "hypothetical" in self.context

    @property
    def historical(self) -> bool:
        """It was in the past."""
        return "historical" in self.context

    @property
    def family(self) -> bool:
        """It is somebody else's, mostly a relative's."""
        return "family" in self.context

    def as_json(self, document: Document) -> dict[str, Any]:
        """A plain dictionary; `cue` has the words for every property that is true."""
        return {
            "document": document.id,
            "begin": self.span.begin,
            "end": self.span.end,
            "text": document[self.span],
            "kind": self.kind,
            "concept": self.concept.as_json() if self.concept else None,
            "found_by": list(self.found_by),
            **{flag: flag in self.context for flag in FLAGS},
            "cue": {
                flag: {"text": cue.words, "begin": cue.span and cue.span.begin, "end": cue.span and cue.span.end}
                for flag, cue in self.context.items()
            },
        }


class Annotator:
    """Finds the mentions of documents with one vocabulary and one tagger."""

    def __init__(self, vocabulary: Vocabulary, tagger: Tagger | None) -> None:
        self.gazetteer = Gazetteer(vocabulary)
        self.tagger = tagger

    def annotate(self, document: Document) -> list[Mention]:
        """The mentions of a document, in its order; no two overlap."""
        text = document.text
        cut, parts = sentences(text), sections(document)
        places = [part.span for part in parts]
        found = []
        for mention in self._found(text, cut):
            part = _last(parts, places, mention.span.begin)
            if part is None or not _names_section(part, mention.span):
                sentence = _last(cut, cut, mention.span.begin)
                cues = context(text, mention.span, part.heading if part else None, sentence)
                found.append(replace(mention, context=cues) if cues else mention)
        return found

    def _found(self, text: str, cut: Sequence[Span]) -> list[Mention]:
        """The mentions, without their context."""
        named = [
            Mention(name.span, name.concept.kind, name.concept, ("vocabulary",))
            for name in self.gazetteer.find(text, self._defined(text))
        ]
        if self.tagger is None:
            return named
        tagged = (self._tagged(text, tagged) for tagged in self.tagger.tag(text, cut))
        return merged([*named, *filter(None, tagged)])

    def _defined(self, text: str) -> dict[str, Concept | None]:
        """What the abbreviations mean that the text itself explains, wherever it does; None for what is no concept."""
        meant: dict[str, Concept | None] = {}
        for short, long in definitions(text):
            words = long.of(text)
            at_end = [name.concept for name in self.gazetteer.find(words) if name.span.end == len(words)]
            meant[short] = at_end[-1] if at_end else None
        return meant

    def _tagged(self, text: str, tagged: Tagged) -> Mention | None:
        """What the tagger found, with the concept of the whole or of the last part of it that has one.

        What the vocabulary does not know at all has to be certain: the tagger learned from abstracts, not from notes.
        """
        words = tagged.span.of(text)
        kind = KINDS.get(tagged.type, tagged.type.lower())
        concept = next((name.concept for name in reversed(list(self.gazetteer.find(words)))), None)
        if concept is not None and concept.kind == "drug" and kind != "drug":
            concept = None  # lithium toxicity is not lithium
        if concept is None and (tagged.confidence < CERTAIN or is_ordinary(words)):
            return None
        return Mention(tagged.span, concept.kind if concept else kind, concept, ("tagger",))


def merged(mentions: Iterable[Mention]) -> list[Mention]:
    """The mentions without overlaps.

    Of two that overlap the longer stays, since the tagger sees what a name is part of ("severe systolic heart
    failure"), and the vocabulary names of several words; but a drug ends where its name ends. It counts as found by
    both.
    """
    found: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (m.span.begin, -m.span.end, m.found_by == ("tagger",))):
        if not found or found[-1].span.end <= mention.span.begin:
            found.append(mention)
            continue
        last = found[-1]
        both = tuple(sorted({*last.found_by, *mention.found_by}, reverse=True))
        drug_inside = last.kind == mention.kind == "drug" and last.found_by == ("tagger",)
        if (drug_inside and last.span.covers(mention.span)) or len(range(*mention.span)) > len(range(*last.span)):
            found[-1] = replace(mention, found_by=both)
        else:
            found[-1] = replace(last, found_by=both)
    return found


def _last(items: Sequence[Item], spans: Sequence[Span], position: int) -> Item | None:
    """Of the items with these spans, in the order of the text, the last that begins at or before a position."""
    at = bisect_right(spans, position, key=lambda span: span.begin) - 1
    return items[at] if at >= 0 else None


def _names_section(part: Section, span: Span) -> bool:
    """Whether a span is in a heading of a usual section: "Allergies:" is where allergies stand, not one of them."""
    in_heading = part.heading_span is not None and part.heading_span.covers(span)
    return in_heading and aspect_of(part.heading or "") in aspects()


@lru_cache(maxsize=4)
def annotator(with_tagger: bool = True, vocabulary: Vocabulary | None = None) -> Annotator:
    """An annotator with the tagger that ships with capr, or none; loaded once."""
    if not with_tagger:
        return Annotator(vocabulary or Vocabulary.load(), None)
    from capr.annotate.tagger import shipped  # takes a while, which those who do without it need not wait

    return Annotator(vocabulary or Vocabulary.load(), shipped())


def annotate(document: Document | str, tagger: bool = True, vocabulary: Vocabulary | None = None) -> list[Mention]:
    """The diseases, symptoms and drugs of a document, with their concepts and their context.

    Args:
        document: as `capr.read` gives it, or a text.
        tagger: whether to look also for what the vocabulary does not have. Without it annotating is many times faster.
        vocabulary: with names of your own (`Vocabulary.load("terms.csv")`); the one that ships if not given.

    Example:
        >>> document = Document("n1", "Denies chest pain. Father had a heart attack. Takes Lasix.")
        >>> [(document[m.span], m.kind, m.concept.name, *m.context) for m in annotate(document)]
        ... # doctest: +NORMALIZE_WHITESPACE
        [('chest pain', 'symptom', 'chest pain', 'negated'),
         ('heart attack', 'disease', 'myocardial infarction', 'family'),
         ('Lasix', 'drug', 'furosemide')]
    """
    if isinstance(document, str):
        document = Document("", document)
    return annotator(tagger, vocabulary).annotate(document)
