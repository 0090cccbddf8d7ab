"""Labels of passages: the entities that they mention, and the aspects that their headings name.

Reference: Grundmann et al., Self-Supervised Answer Retrieval on Clinical Notes (CAPR): entities are the title, links
and mentions, aspects the headings. CAPR does not use a passage that lacks either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from capr.annotate.concept import Concept
from capr.annotate.mentions import Annotator
from capr.deprecation import renamed_arguments
from capr.documents import Document, Span
from capr.segment import opening, outline, passages
from capr.segment.aspects import aspect_of, cued, heading
from capr.segment.cutting import MAX_WORDS
from capr.text.names import key, plain_key

ENTITIES = ("title", "links", "mentions")
OVERVIEW = "information"
NARROWER_ASPECTS = {"inheritance": "genetics"}  # by the broader aspect whose sections often cover them
MIN_WORDS = 8  # shorter passages say too little to answer anything


@dataclass(frozen=True, slots=True)
class Labels:
    """A passage with its labels.

    Attributes:
        document: the id of its document.
        span: the passage without its heading.
        text: the text of that span.
        entities: what the passage is about, as (identity, words). Two names of one thing share one identity.
        aspects: what its headings say it is about, as (aspect, heading).
        title: the title of the document.
        heading: the heading of the passage, which its text does not contain.
        names: other names of the document's subject, which is the first entity.
        questions: questions of the source that the passage answers, as in question-and-answer collections.
        opening: the opening of the document, if the passage does not begin it.
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
    """Labels the passages of documents, and counts the passages that it skips, by reason.

    Attributes:
        annotator: finds the mentions.
        entities: the sources of entities, from `ENTITIES`. If None, an article takes them from its title and links, and
            any other document from links and mentions, as in CAPR.
        negated: whether to label a passage with entities that its text negates. CAPR did, and names this as its main
            source of errors.
        max_words: the maximum length of a passage.
        aspects_from_text: whether to add aspects that only the words of an article's passage show. An overview
            mentions all aspects, so it gets none.
        aliases: other names of subjects, by title.
        held_out: names of test entities. The labeller skips documents about them, and labels no passage with them.
        held_out_texts: texts of a test. The labeller skips a passage that equals one or a part of one, in any document.
        skipped: the number of skipped passages, by reason; `held out` also counts documents.
    """

    annotator: Annotator
    entities: tuple[str, ...] | None = None
    negated: bool = False
    max_words: int = MAX_WORDS
    aspects_from_text: bool = True
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    held_out: Collection[str] = ()
    held_out_texts: Collection[str] = ()
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._held_out = {form for name in self.held_out for form in (self._identity(name), plain_key(name))}
        self._held_out_texts = "\n".join(" ".join(text.split()) for text in self.held_out_texts)

    def labels(self, document: Document) -> Iterator[Labels]:
        """Yield the passages of a document that have both an entity and an aspect."""
        title = self._title_entities(document)
        names = self._other_names(document) if title else ()
        if self._is_about_held_out(document, names):
            self.skipped["held out"] += 1
            return
        sources = self.entities or (("title", "links") if title else ("links", "mentions"))
        document_outline = outline(document)
        mentions = self.annotator.annotate(document, document_outline) if "mentions" in sources else []
        begins = [mention.span.begin for mention in mentions]
        annotations = [*document.annotated("link"), *document.annotated("mention")] if "links" in sources else []
        links = sorted(annotation.span for annotation in annotations)
        for passage in passages(document, self.max_words, known=document_outline):
            span = passage.body.trimmed(document.text)
            entities = dict(title) if "title" in sources else {}
            for link in links[bisect_left(links, (span.begin,)) : bisect_left(links, (span.end,))]:
                if span.covers(link):
                    entities.setdefault(self._identity(document[link]), document[link])
            for mention in mentions[bisect_left(begins, span.begin) : bisect_left(begins, span.end)]:
                if span.covers(mention.span) and (self.negated or not mention.negated):
                    words = " ".join(document[mention.span].split())
                    entities.setdefault(_identity_of(mention.concept, words), words)
            entities = {
                identity: words for identity, words in entities.items() if not self._is_held_out(identity, words)
            }
            aspects, questions = _aspects_and_questions(document, span, passage.heading or "")
            if self.aspects_from_text and title and aspects and OVERVIEW not in aspects:
                aspects = _with_cued_aspects(aspects, cued(document[span]))
            if len(document[span].split()) < MIN_WORDS:
                self.skipped["too short"] += 1
            elif self.is_held_out_text(document[span]):
                self.skipped["held out"] += 1
            elif not aspects:
                self.skipped["no heading"] += 1
            elif not entities:
                self.skipped["no entity"] += 1
            else:
                section_heading = "" if questions else passage.heading or ""
                labels = tuple(entities.items()), tuple(aspects.items())
                yield Labels(
                    document.id,
                    span,
                    document[span],
                    *labels,
                    document.title,
                    section_heading,
                    names,
                    questions,
                    opening(document.text, passage.span.begin),
                )

    def named(self, document: Document) -> tuple[str, ...]:
        """List the names of a document's subject, its title first; none if it has no title or is held out."""
        names = self._other_names(document)
        if not document.title.strip() or self._is_about_held_out(document, names):
            return ()
        return document.title, *names

    def is_held_out_text(self, text: str) -> bool:
        """Tell whether a text equals a text of the test, or a part of one, up to white space."""
        return bool(self._held_out_texts) and " ".join(text.split()) in self._held_out_texts

    def _is_about_held_out(self, document: Document, names: Sequence[str]) -> bool:
        return any(self._is_held_out(self._identity(name), name) for name in (document.title, *names))

    def _title_entities(self, document: Document) -> dict[str, str]:
        """Find the subject of an article: its title if that is a name, else the names in the title.

        An unknown title counts as a name if the source marks sections, as encyclopedias do. A note's title only
        tells the type of the note.
        """
        title = " ".join(document.title.split())
        if not title or document.metadata.get("patient"):
            return {}
        entities = {match.concept.code: match.span.of(title) for match in self.annotator.gazetteer.find(title)}
        if self.annotator.gazetteer.vocabulary.find(title) or (not entities and document.annotated("section")):
            return {self._identity(title): title}
        return entities

    def _other_names(self, document: Document) -> tuple[str, ...]:
        """List other names of an article's subject, from the source and from `aliases`."""
        synonyms = document.metadata.get("synonyms")
        names = [
            *self.aliases.get(document.title, ()),
            *(map(str, synonyms) if isinstance(synonyms, list | tuple) else ()),
        ]
        return tuple(dict.fromkeys(name for name in names if name.strip() and name != document.title))

    def _is_held_out(self, identity: str, name: str) -> bool:
        return identity in self._held_out or plain_key(name) in self._held_out

    def _identity(self, name: str) -> str:
        return _identity_of(self.annotator.gazetteer.vocabulary.find(name), name)


Labeller.__init__ = renamed_arguments(cues="aspects_from_text")(Labeller.__init__)  # type: ignore[method-assign]


def _aspects_and_questions(document: Document, span: Span, heading: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Find the aspects of a passage and the questions about it.

    A source that asks questions says which aspect they mean.
    """
    sections = [annotation.value for annotation in document.annotated("section") if annotation.span.covers(span)]
    if sections and sections[-1].get("aspect"):
        aspect, question = str(sections[-1]["aspect"]), str(sections[-1].get("heading", ""))
        return {aspect_of(aspect): aspect}, (question,) if question.endswith("?") else ()
    return {aspect_of(heading_part): heading_part for heading_part in heading.split(" | ") if heading_part.strip()}, ()


def _with_cued_aspects(aspects: dict[str, str], cued: Collection[str]) -> dict[str, str]:
    """Add the aspects that the words of a passage show to those of its heading.

    A passage under `genetics` that only mentions inheritance is about inheritance alone.
    """
    for narrow, broad in NARROWER_ASPECTS.items():
        if narrow in cued and broad not in cued:
            aspects = {name: heading_text for name, heading_text in aspects.items() if name != broad}
    return aspects | {name: heading(name) for name in cued if name not in aspects}


def _identity_of(concept: Concept | None, name: str) -> str:
    """Return the identity that all names of one thing share."""
    return concept.code if concept else key(name) or name


def labelled(documents: Iterator[Document], labeller: Labeller) -> Iterator[Labels]:
    """Yield the labelled passages of documents, one document at a time."""
    for document in documents:
        yield from labeller.labels(document)
