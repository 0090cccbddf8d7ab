"""Labels of passages: the entities that they speak of, and the aspects that their headings name.

Reference: Grundmann et al., Self-Supervised Answer Retrieval on Clinical Notes (CAPR): entities are the title, links
and mentions, aspects the headings; a passage that lacks either is not used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from capr.annotate.aspects import aspect_of, cued
from capr.annotate.concept import Concept
from capr.annotate.mentions import Annotator
from capr.annotate.names import key, plain_key
from capr.annotate.query import heading
from capr.documents import Document, Span
from capr.segment import opening, passages

ENTITIES = ("title", "links", "mentions")
OVERVIEW = "information"
PARTS = {"inheritance": "genetics"}  # of which sections often speak under one heading
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
        title: of the document.
        heading: of the passage, which its text does not have.
        names: other names of the document's subject, which is the first entity.
        questions: that the source itself asks here, as question-and-answer collections do.
        opening: of the document, if the passage does not begin it.
    """

    document: str
    span: Span
    text: str
    entities: tuple[tuple[str, str], ...]
    aspects: tuple[tuple[str, str], ...]
    title: str = ""
    heading: str = ""
    names: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    opening: str = ""


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
        cues: whether an article's passage is also labelled with aspects of which only its words speak; an overview
            speaks of all, and is not.
        aliases: other names of subjects, by title.
        held_out: names of entities on which a model is to be tested: documents about them are not used, and no passage
            is labelled with them.
        held_out_texts: of a test: a passage that is one of them, or a part of one, is not used, whatever its document.
        skipped: passages left out, by reason; `held out` also counts documents.
    """

    annotator: Annotator
    entities: tuple[str, ...] | None = None
    negated: bool = False
    max_words: int = 250
    cues: bool = True
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    held_out: Collection[str] = ()
    held_out_texts: Collection[str] = ()
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._held_out = {form for name in self.held_out for form in (self._named(name), plain_key(name))}
        self._held_out_texts = "\n".join(" ".join(text.split()) for text in self.held_out_texts)

    def labels(self, document: Document) -> Iterator[Labels]:
        """The passages of a document that have both an entity and an aspect."""
        title = self._title(document)
        names = self._names(document) if title else ()
        if self._is_about_held_out(document, names):
            self.skipped["held out"] += 1
            return
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
            found = {identity: words for identity, words in found.items() if not self._is_held_out(identity, words)}
            aspects, questions = _asked(document, span, passage.heading or "")
            if self.cues and title and aspects and OVERVIEW not in aspects:
                aspects = _shown(aspects, cued(document[span]))
            if len(document[span].split()) < MIN_WORDS:
                self.skipped["too short"] += 1
            elif self.is_held_out_text(document[span]):
                self.skipped["held out"] += 1
            elif not aspects:
                self.skipped["no heading"] += 1
            elif not found:
                self.skipped["no entity"] += 1
            else:
                above = "" if questions else passage.heading or ""
                labels = tuple(found.items()), tuple(aspects.items())
                yield Labels(
                    document.id, span, document[span], *labels, document.title, above, names, questions,
                    opening(document.text, passage.span.begin),
                )  # fmt: skip

    def named(self, document: Document) -> tuple[str, ...]:
        """The names of a document's subject, its title first; none if it has no title or is held out."""
        names = self._names(document)
        if not document.title.strip() or self._is_about_held_out(document, names):
            return ()
        return document.title, *names

    def is_held_out_text(self, text: str) -> bool:
        """Whether a passage or a sentence is a text of the test, or a part of one; blanks do not matter."""
        return bool(self._held_out_texts) and " ".join(text.split()) in self._held_out_texts

    def _is_about_held_out(self, document: Document, names: Sequence[str]) -> bool:
        return any(self._is_held_out(self._named(name), name) for name in (document.title, *names))

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

    def _names(self, document: Document) -> tuple[str, ...]:
        """Other names of an article's subject, as the source or somebody else gives them."""
        said = document.metadata.get("synonyms")
        names = [*self.aliases.get(document.title, ()), *(map(str, said) if isinstance(said, list | tuple) else ())]
        return tuple(dict.fromkeys(name for name in names if name.strip() and name != document.title))

    def _is_held_out(self, identity: str, name: str) -> bool:
        return identity in self._held_out or plain_key(name) in self._held_out

    def _named(self, name: str) -> str:
        return _identity(self.annotator.gazetteer.vocabulary.find(name), name)


def _asked(document: Document, span: Span, heading: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The aspects of a passage, and the questions about it; a source that asks questions says what aspect they mean."""
    said = [section.value for section in document.annotated("section") if section.span.covers(span)]
    if said and said[-1].get("aspect"):
        aspect, question = str(said[-1]["aspect"]), str(said[-1].get("heading", ""))
        return {aspect_of(aspect): aspect}, (question,) if question.endswith("?") else ()
    return {aspect_of(part): part for part in heading.split(" | ") if part.strip()}, ()


def _shown(aspects: dict[str, str], cued: Collection[str]) -> dict[str, str]:
    """The aspects of a passage by its heading, with those that its words show.

    A passage on genetics that speaks of inheritance alone is on that.
    """
    for part, whole in PARTS.items():
        if part in cued and whole not in cued:
            aspects = {name: words for name, words in aspects.items() if name != whole}
    return aspects | {name: heading(name) for name in cued if name not in aspects}


def _identity(concept: Concept | None, name: str) -> str:
    """What two names of one thing share."""
    return concept.code if concept else key(name) or name


def labelled(documents: Iterator[Document], labeller: Labeller) -> Iterator[Labels]:
    """The labelled passages of documents, one document at a time."""
    for document in documents:
        yield from labeller.labels(document)
