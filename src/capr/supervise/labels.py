"""Labels of passages: the entities that they speak of, and the aspects that their headings name.

Reference: Grundmann et al., Self-Supervised Answer Retrieval on Clinical Notes (CAPR): entities are the title, links
and mentions, aspects the headings; a passage that lacks either is not used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from capr.annotate.aspects import aspect_of
from capr.annotate.concept import Concept
from capr.annotate.mentions import Annotator
from capr.annotate.names import key
from capr.documents import Document, Span
from capr.segment import passages

ENTITIES = ("title", "links", "mentions")
MIN_WORDS = 8  # shorter passages say too little to answer anything


@dataclass(frozen=True, slots=True)
class Labels:
    """A passage with what it speaks of.

    Attributes:
        document: its id.
        span: the passage without its heading.
        text: of that span.
        entities: what it is about, as (identity, words): two names of one thing have one identity.
        aspects: what its headings say it is about, as (aspect, heading).
    """

    document: str
    span: Span
    text: str
    entities: tuple[tuple[str, str], ...]
    aspects: tuple[tuple[str, str], ...]


@dataclass
class Labeller:
    """Labels the passages of documents, and counts what it leaves out and why.

    Attributes:
        annotator: finds the mentions.
        entities: where entities come from, of `ENTITIES`; if None, from the title and the links of an article and from
            the mentions of anything else, as in CAPR.
        negated: whether what a text says is *not* there counts as what it speaks of. CAPR did not tell the two apart,
            and names it as its main source of errors.
        max_words: of a passage.
        skipped: passages left out, by reason.
    """

    annotator: Annotator
    entities: tuple[str, ...] | None = None
    negated: bool = False
    max_words: int = 250
    skipped: Counter[str] = field(default_factory=Counter)

    def labels(self, document: Document) -> Iterator[Labels]:
        """The passages of a document that have both an entity and an aspect."""
        title = self._title(document)
        wanted = self.entities or (("title", "links") if title else ("links", "mentions"))
        mentions = self.annotator.annotate(document) if "mentions" in wanted else []
        begins = [mention.span.begin for mention in mentions]
        marked = [*document.annotated("link"), *document.annotated("mention")] if "links" in wanted else []
        links = sorted(annotation.span for annotation in marked)
        for passage in passages(document, self.max_words):
            span = passage.body.trimmed(document.text)
            found = dict(title) if "title" in wanted else {}
            for link in links[bisect_left(links, (span.begin,)) : bisect_left(links, (span.end,))]:
                if span.covers(link):
                    found.setdefault(self._named(document[link]), document[link])
            for mention in mentions[bisect_left(begins, span.begin) : bisect_left(begins, span.end)]:
                if span.covers(mention.span) and (self.negated or not mention.negated):
                    words = " ".join(document[mention.span].split())
                    found.setdefault(_identity(mention.concept, words), words)
            aspects = {aspect_of(part): part for part in (passage.heading or "").split(" | ") if part.strip()}
            if len(document[span].split()) < MIN_WORDS:
                self.skipped["too short"] += 1
            elif not aspects:
                self.skipped["no heading"] += 1
            elif not found:
                self.skipped["no entity"] += 1
            else:
                yield Labels(document.id, span, document[span], tuple(found.items()), tuple(aspects.items()))

    def _title(self, document: Document) -> dict[str, str]:
        """The subject of an article: its title if that is a name, else the names in it.

        An unknown title counts where the source marks sections, as encyclopedias do; a note's title tells its kind.
        """
        title = " ".join(document.title.split())
        if not title or document.metadata.get("patient"):
            return {}
        named = {found.concept.code: found.span.of(title) for found in self.annotator.gazetteer.find(title)}
        if self.annotator.gazetteer.vocabulary.find(title) or (not named and document.annotated("section")):
            return {self._named(title): title}
        return named

    def _named(self, name: str) -> str:
        return _identity(self.annotator.gazetteer.vocabulary.find(name), name)


def _identity(concept: Concept | None, name: str) -> str:
    """What two names of one thing share."""
    return concept.code if concept else key(name) or name


def labelled(documents: Iterator[Document], labeller: Labeller) -> Iterator[Labels]:
    """The labelled passages of documents, one document at a time."""
    for document in documents:
        yield from labeller.labels(document)
