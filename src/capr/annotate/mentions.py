"""Mentions: the diseases, symptoms and drugs of a document, with their concepts and contexts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from capr.annotate.abbreviations import definitions
from capr.annotate.concept import Concept
from capr.annotate.context import FLAGS, Cue, context, cues_as_json
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.ordinary_words import is_ordinary
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Document, Span
from capr.segment import Outline, Section, outline
from capr.segment.aspects import aspect_of, aspects

if TYPE_CHECKING:
    from capr.runtime.tagger import TaggedSpan, Tagger

Item = TypeVar("Item")
CERTAIN = 0.9  # minimum confidence of the tagger in a name that is not in the vocabulary
KINDS = {"Disease": "disease", "Chemical": "drug"}  # type of the tagger to kind of mention


@dataclass(frozen=True, slots=True)
class Mention:
    """A span that names a disease, symptom or drug.

    Attributes:
        span: the span in the text of the document.
        kind: `disease`, `symptom`, `drug` or a kind of a user's vocabulary.
        concept: the concept; None if no part of the name is in the vocabulary.
        found_by: `vocabulary`, `tagger`, or both.
        context: the cue of each property: negated, possible, hypothetical, historical, family.
    """

    span: Span
    kind: str
    concept: Concept | None
    found_by: tuple[str, ...]
    context: Mapping[str, Cue] = field(default_factory=dict)

    @property
    def negated(self) -> bool:
        """Whether the text says that it is absent."""
        return "negated" in self.context

    @property
    def possible(self) -> bool:
        """Whether the text says that it is uncertain."""
        return "possible" in self.context

    @property
    def hypothetical(self) -> bool:
        """Whether the text says that it may occur in the future."""
        return "hypothetical" in self.context

    @property
    def historical(self) -> bool:
        """Whether the text says that it is in the past."""
        return "historical" in self.context

    @property
    def family(self) -> bool:
        """Whether the text says that another person has it, usually a relative."""
        return "family" in self.context

    def as_json(self, document: Document) -> dict[str, Any]:
        """Return a plain dictionary; `cues` has the words of every property that is true.

        `cue` is the old name of `cues`, which this release still supports.
        """
        cues = cues_as_json(self.context)
        return {
            "document": document.id,
            "begin": self.span.begin,
            "end": self.span.end,
            "text": document[self.span],
            "kind": self.kind,
            "concept": self.concept.as_json() if self.concept else None,
            "found_by": list(self.found_by),
            **{flag: flag in self.context for flag in FLAGS},
            "cues": cues,
            "cue": cues,
        }


class Annotator:
    """Finds the mentions of documents with one vocabulary and one tagger."""

    def __init__(self, vocabulary: Vocabulary, tagger: Tagger | None) -> None:
        self.gazetteer = Gazetteer(vocabulary)
        self.tagger = tagger

    def annotate(self, document: Document, document_outline: Outline | None = None) -> list[Mention]:
        """Return the mentions of a document, in the order of the text, without overlaps.

        Args:
            document: the document.
            document_outline: its outline, if the caller has it.
        """
        text = document.text
        spans, sections = document_outline or outline(document)
        section_spans = [section.span for section in sections]
        mentions = []
        for mention in self._mentions(text, spans):
            section = _last(sections, section_spans, mention.span.begin)
            if section is None or not _names_section(section, mention.span):
                sentence = _last(spans, spans, mention.span.begin)
                cues = context(text, mention.span, section.heading if section else None, sentence)
                mentions.append(replace(mention, context=cues) if cues else mention)
        return mentions

    def _mentions(self, text: str, sentences: Sequence[Span]) -> list[Mention]:
        """Find the mentions, without their context."""
        named = [
            Mention(name.span, name.concept.kind, name.concept, ("vocabulary",))
            for name in self.gazetteer.find(text, self._abbreviations(text))
        ]
        if self.tagger is None:
            return named
        tagged = (self._mention(text, tagged) for tagged in self.tagger.tag(text, sentences))
        return merge_mentions([*named, *filter(None, tagged)])

    def _abbreviations(self, text: str) -> dict[str, Concept | None]:
        """Return the concepts of the abbreviations that the text defines; None if the long form has no concept."""
        concepts: dict[str, Concept | None] = {}
        for short, long in definitions(text):
            words = long.of(text)
            at_end = [name.concept for name in self.gazetteer.find(words) if name.span.end == len(words)]
            concepts[short] = at_end[-1] if at_end else None
        return concepts

    def _mention(self, text: str, tagged: TaggedSpan) -> Mention | None:
        """Return the mention of a tagged entity, with the concept of the entity or of the last name in it.

        An entity without a concept needs a high confidence: the tagger was trained on abstracts, not on notes.
        """
        words = tagged.span.of(text)
        kind = KINDS.get(tagged.type, tagged.type.lower())
        concept = next((name.concept for name in reversed(list(self.gazetteer.find(words)))), None)
        if concept is not None and concept.kind == "drug" and kind != "drug":
            concept = None  # lithium toxicity is not lithium
        if concept is None and (tagged.confidence < CERTAIN or is_ordinary(words)):
            return None
        return Mention(tagged.span, concept.kind if concept else kind, concept, ("tagger",))


def merge_mentions(mentions: Iterable[Mention]) -> list[Mention]:
    """Remove overlaps between mentions.

    The longer of two overlapping mentions stays, found by both: the tagger marks modifiers of a name ("severe systolic
    heart failure"), and the vocabulary has names of several words. But the name of a drug in the vocabulary replaces a
    longer one of the tagger.
    """
    disjoint: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (m.span.begin, -m.span.end, m.found_by == ("tagger",))):
        if not disjoint or disjoint[-1].span.end <= mention.span.begin:
            disjoint.append(mention)
            continue
        last = disjoint[-1]
        finders = tuple(sorted({*last.found_by, *mention.found_by}, reverse=True))
        drug_inside = last.kind == mention.kind == "drug" and last.found_by == ("tagger",)
        if (drug_inside and last.span.covers(mention.span)) or len(range(*mention.span)) > len(range(*last.span)):
            disjoint[-1] = replace(mention, found_by=finders)
        else:
            disjoint[-1] = replace(last, found_by=finders)
    return disjoint


def _last(items: Sequence[Item], spans: Sequence[Span], position: int) -> Item | None:
    """Return the last item whose span begins at or before a position; items are in the order of the text."""
    index = bisect_right(spans, position, key=lambda span: span.begin) - 1
    return items[index] if index >= 0 else None


def _names_section(section: Section, span: Span) -> bool:
    """Whether a span is in the heading of a usual section: "Allergies:" names the section and mentions no allergy."""
    in_heading = section.heading_span is not None and section.heading_span.covers(span)
    return in_heading and aspect_of(section.heading or "") in aspects()


@lru_cache(maxsize=4)
def annotator(with_tagger: bool = True, vocabulary: Vocabulary | None = None) -> Annotator:
    """Return an annotator with the built-in tagger, or without a tagger; loaded once."""
    if not with_tagger:
        return Annotator(vocabulary or Vocabulary.load(), None)
    from capr.runtime.tagger import shipped  # the import is slow

    return Annotator(vocabulary or Vocabulary.load(), shipped())


def annotate(document: Document | str, tagger: bool = True, vocabulary: Vocabulary | None = None) -> list[Mention]:
    """Find the diseases, symptoms and drugs of a document, with their concepts and contexts.

    Args:
        document: a document of `capr.read`, or a text.
        tagger: also find entities that are not in the vocabulary. Annotation is many times faster without the tagger.
        vocabulary: a vocabulary with your own names (`Vocabulary.load("terms.csv")`). Default: the built-in one.

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
