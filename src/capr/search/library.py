"""The library: documents on disk, and the search over them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from capr.annotate import Query, Vocabulary
from capr.annotate.completion import Suggestion
from capr.annotate.mentions import Annotator, annotator
from capr.documents import CaprError, Document, Notice, NotThereError, Problem, read
from capr.index import Discourse, EmbeddedIndex, Encoder, Filters, Grain, Index, Part, Patient, Prepared, Stats, Stored
from capr.index.digest import as_text, digest
from capr.index.filters import ASPECT, ID, Condition, clean, field_name
from capr.index.verify import Check, verify
from capr.search import asking
from capr.search.answers import Answers
from capr.search.conditions import about_entities, passed_by_none, resolved
from capr.search.curve import Curve, headings_of, scored
from capr.search.encode import encode_passages, encode_sentences
from capr.search.facets import FACETS, Facets, faceted
from capr.search.fusion import DEFAULT
from capr.search.hit import Results
from capr.search.models import NONE, Models, answer_reader
from capr.search.pair import pair_of
from capr.search.paragraphs import WHOLE, every, found_by
from capr.search.parse import Parser
from capr.search.passages import Options, PassageSearch, same_model
from capr.search.prepare import discoursed, encoded, prepared
from capr.search.reader import AnswerReader
from capr.search.rerank import Ranker
from capr.search.strip import Strip, by_words

BATCH = 256  # passages that are encoded and kept at once
SCORERS = ("discourse", "encoder", "words", "best")
FEW_SENTENCES = 400  # of a document, up to which an encoder reads them while somebody waits
WITHOUT = 2000  # passages that are kept at once if they are not encoded, and documents that are removed at once
SECONDS = 2.0  # of preparing, after which documents are kept
LIKELY = 200  # suggestions among which those are that a part of a library mentions
MOST_ASPECTS = 100_000  # aspects, which may be as many as there are headings

Given = Document | str | os.PathLike[str]


@dataclass
class Added:
    """What became of documents that were added.

    Attributes:
        added: documents that are new.
        replaced: documents that had been there with other contents.
        unchanged: documents that had been there just so.
        passages: of the documents added and replaced.
        encoded: passages that the encoder had to read; the vectors of others were known.
        sentences: to which the discourse model had to give vectors, likewise.
        problems: documents that could not be added, and why.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    passages: int = 0
    encoded: int = 0
    sentences: int = 0
    problems: list[Problem] = field(default_factory=list)


class Library:
    """Documents in a folder, found by words and by meaning.

    Several processes may search while one adds. What `add` has kept survives whatever happens to the process.

    Args:
        path: the folder; made by the first `add`.
        encoder: turns texts into vectors: a folder, an `Encoder`, or "none"; if not given, the one that the library
            remembers, and for a new one the one that ships.
        ranker: re-ranks the best candidates: a folder, a `Ranker`, or "none"; if not given, the one that ships.
        discourse: gives sentences vectors: a folder, a `Discourse`, or "none"; if not given, the one that the library
            remembers.
        reader: reads answers: a folder, an `AnswerReader`, or "none"; if not given, the one that ships.
        vocabulary: with names of your own.

    Example:
        >>> import capr, tempfile
        >>> library = Library(tempfile.mkdtemp() + "/notes")
        >>> library.add(Document("n1", "PLAN: Start aspirin after the heart attack.")).added
        1
        >>> hit = library.search("myocardial infarction")[0]
        >>> hit.document, [hit[span] for span in hit.highlights]
        ('n1', ['heart attack'])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoder: Encoder | str | os.PathLike[str] | None = None,
        ranker: Ranker | str | os.PathLike[str] | None = None,
        discourse: Discourse | str | os.PathLike[str] | None = None,
        reader: AnswerReader | str | os.PathLike[str] | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.path = Path(path)
        self.vocabulary = vocabulary or Vocabulary.load()
        self.models = Models(self.path, encoder, ranker, discourse, reader)
        self._index: EmbeddedIndex | None = None
        self._part: Part | None = None
        self._strip = Strip()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the files."""
        if self._index is not None and self._part is None:
            self._index.close()
            self._index = None

    @property
    def engine(self) -> EmbeddedIndex:
        """The engine, for what changes it or looks at all of it.

        Raises:
            CaprError: this is a part of a library, or there is none.
        """
        if self._part is not None:
            raise CaprError("a part of a library cannot be changed. Fix: change the library itself.")
        if self._index is None:
            self._index = EmbeddedIndex(self.path)
        return self._index

    @property
    def index(self) -> Index:
        """The engine, for what is read and found."""
        return self.engine if self._part is None else self._part

    def within(self, filters: Filters | Mapping[str, Any] | Iterable[str] | str | None) -> Library:
        """The documents that pass, as a library of its own: whatever is asked of it, there are no others.

        It is made at once, shares files and models with this one, and cannot be changed. Filters that are about
        passages, such as `aspect`, make no library.

        Example:
            >>> import tempfile
            >>> library = Library(tempfile.mkdtemp() + "/notes")
            >>> notes = [Document(f"n{i}", "PLAN: Rest.", metadata={"patient": f"p{i}"}) for i in range(3)]
            >>> library.add(notes).added, library.within({"patient": "p1"}).stats().documents
            (3, 1)
        """
        part = copy(self)
        part.__dict__.pop("_parser", None)  # it knows the fields of all documents
        chosen = self._filters(filters)
        if chosen or chosen.without:  # which makes none, and says so
            part._part = Part(self.index, chosen)
        return part

    # --- changing ---

    def add(
        self,
        documents: Given | Iterable[Given],
        *,
        replace: bool = False,
        tagger: bool = False,
        model: Discourse | str | os.PathLike[str] | None = None,
        on_commit: Callable[[Sequence[str]], None] | None = None,
        on_problem: Callable[[Problem], None] | None = None,
    ) -> Added:
        """Adds documents. Interrupted, it goes on where it stopped when it is called with the same documents again.

        Args:
            documents: one or many, or files and folders to read.
            replace: exchange a document whose id is there with other contents, instead of reporting a problem.
            tagger: look for entities that the vocabulary does not have, too, which is many times slower.
            model: a discourse model, from now on that of the library, as if it had been opened with it.
            on_commit: called with the ids of documents once they are kept for good.
            on_problem: called with each problem as it is met.

        Raises:
            CaprError: another process is writing, the encoder is missing or is another one than before.
        """
        if model is not None:
            self.models = self.models.with_discourse(model)
        self.models.check()  # or a new library would be left empty
        if self._index is None and self._part is None:
            self._index = EmbeddedIndex(self.path, create=True)
        outcome = Added()
        finder = annotator(tagger, self.vocabulary)
        with self.engine.writing() as writer:
            encoder = self.models.to_add(self.index)
            if encoder is not None:
                writer.set_encoder(encoder.identity)
            discourse = self.models.discourse_to_add(self.index)
            if discourse is not None:
                writer.set_encoder(discourse.identity, Grain.SENTENCES)
            writer.commit()
            slow = encoder is not None or discourse is not None
            for batch in self._batches(documents, finder, replace, slow, outcome, on_problem):
                if encoder is not None:
                    batch, count = encoded(batch, encoder, self.index)
                    outcome.encoded += count
                if discourse is not None:
                    batch, count = discoursed(batch, discourse, self.index)
                    outcome.sentences += count
                for one in batch:
                    writer.add(one)
                writer.commit()
                if on_commit:
                    on_commit([one.document.id for one in batch])
        return outcome

    def _batches(
        self,
        documents: Given | Iterable[Given],
        finder: Annotator,
        replace: bool,
        with_model: bool,
        outcome: Added,
        on_problem: Callable[[Problem], None] | None,
    ) -> Iterator[list[Prepared]]:
        """Documents that are new or changed, prepared, some at a time; counts them."""

        def tell(problem: Problem) -> None:
            if not isinstance(problem, Notice):
                outcome.problems.append(problem)
            if on_problem:
                on_problem(problem)

        batch: dict[str, Prepared] = {}
        size, begun = 0, time.monotonic()
        for document in _documents(documents, tell):
            if problem := _unusable(document):
                tell(problem)
                continue
            whole = digest(document)
            waiting = batch.get(document.id)
            known = waiting.digest if waiting else self.index.digests([document.id]).get(document.id)
            if known == whole:
                outcome.unchanged += 1
                continue
            if known is not None and not replace:
                file = str(document.metadata.get("file", ""))
                fact = f"the library has a document {document.id!r} with other contents"
                tell(Problem(fact, "replace it (--replace), or give it another id", file, record=document.id))
                continue
            one = prepared(document, finder, whole)
            batch[document.id] = one
            outcome.replaced += known is not None
            outcome.added += known is None
            outcome.passages += len(one.entries)
            size += len(one.entries)
            late = time.monotonic() > begun + SECONDS
            if size >= (BATCH if with_model else WITHOUT) or len(batch) >= WITHOUT or late:
                yield list(batch.values())
                batch, size, begun = {}, 0, time.monotonic()
        if batch:
            yield list(batch.values())

    def remove(
        self, ids: str | Iterable[str] = (), *, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None
    ) -> int:
        """Removes documents by their ids, or all that pass the filters; gives how many there were."""
        given = [ids] if isinstance(ids, str) else list(ids)
        if given and filters is not None:
            raise CaprError("ids and filters are given. Fix: name documents by their ids, or by filters.")
        removed = 0
        with self.engine.writing() as writer:
            wanted = list(dict.fromkeys(map(clean, given)))
            if filters is not None and (chosen := self._document_filters(filters)):
                wanted = list(self.index.ids(chosen))
            for begin in range(0, len(wanted), WITHOUT):
                removed += writer.remove(wanted[begin : begin + WITHOUT])
                writer.commit()
        return removed

    def encode(
        self,
        encoder: Encoder | str | os.PathLike[str] | None = None,
        on_commit: Callable[[int, int], None] | None = None,
        *,
        discourse: Discourse | str | os.PathLike[str] | None = None,
    ) -> int:
        """Gives vectors to every passage, or to its sentences, that has none of this model; gives to how many passages.

        An encoder gives them to passages, a discourse model to sentences. With neither, the models that the library
        remembers do what they have not done yet; one that remembers none takes the encoder that ships. With the encoder
        "none", only sentences get them. Vectors of another model are dropped. Interrupted, it goes on where it stopped
        when it is called again. `on_commit` is called with the passages done so far and in all, for the encoder and
        then for the discourse model.
        """
        if encoder is not None:
            self.models = self.models.with_encoder(encoder)
        if discourse is not None:
            self.models = self.models.with_discourse(discourse)
        alone = encoder is None and discourse is not None
        if encoder is None and self.index.encoder(Grain.SENTENCES) is None and not alone:
            self.models.begin(self.index, empty=False)
        model = None if alone else self.models.encoder(self.index)
        passages_only = encoder is not None and encoder != NONE and discourse is None
        reader = None if passages_only else self.models.discourse(self.index)
        if model is None and reader is None:
            if alone:
                fix = f"leave that out, or capr encode {self.path} --discourse FOLDER"
                raise CaprError(f'there is nothing to encode, since the discourse model is "none". Fix: {fix}.')
            fact = "there is no discourse model, and there is no encoder to encode with"
            raise CaprError(f"{fact}. Fix: capr encode {self.path} --encoder FOLDER.")
        with self.engine.writing() as writer:
            done = encode_passages(self.index, writer, model, BATCH, on_commit) if model is not None else 0
            return done + (encode_sentences(self.index, writer, reader, BATCH, on_commit) if reader is not None else 0)

    # --- looking ---

    def document(self, id: str) -> Document:
        """A document, just as it was added."""
        found = self.index.document(clean(id))
        if found is None:
            raise NotThereError(f"the library has no document {id!r}. Fix: check the id; capr export lists all.")
        return found

    def documents(self, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None) -> Iterator[Document]:
        """All documents, or those that pass the filters, in the order in which they were added."""
        return self.index.documents(self._document_filters(filters))

    def passage(self, document: str, index: int) -> Stored:
        """A passage of a document by its place there, from 0, with its mentions.

        Raises:
            CaprError: there is no such document, or it has no such passage.
        """
        passages = self.index.passages_in(self.document(document).id)
        if not 0 <= index < len(passages):
            there = f"it has {len(passages):,}, counted from 0"
            raise NotThereError(f"the document {document!r} has no passage {index}. Fix: name one of those; {there}.")
        return passages[index]

    def passages(self, document: str) -> Sequence[Stored]:
        """All passages of a document, with their mentions.

        Raises:
            CaprError: there is no such document.
        """
        return self.index.passages_in(self.document(document).id)

    def ids(self, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None) -> list[str]:
        """The ids of all documents, or of those that pass the filters, in the order in which they were added."""
        return list(self.index.ids(self._document_filters(filters)))

    def stats(self, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None) -> Stats:
        """How much there is, in all or in the documents that pass the filters."""
        return self.index.stats(self._document_filters(filters))

    def facets(
        self, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None, names: Sequence[str] = FACETS
    ) -> Facets:
        """How many documents there are of each patient, type, source, aspect and month, among those that pass.

        What is counted of a field leaves the filter of that field out, so that one sees what else could be chosen.
        """
        return faceted(self.index, self._document_filters(filters), names)

    def patients(
        self, typed: str = "", filters: Filters | Mapping[str, Any] | Iterable[str] | None = None
    ) -> list[Patient]:
        """The patients whose name begins with what was typed, with their number of documents and first and last day."""
        wanted = clean(typed).strip().casefold()
        found = self.index.patients(self._document_filters(filters))
        return [one for one in found if one.patient.casefold().startswith(wanted)]

    def verify(self, repair: bool = False, on_progress: Callable[[int, int], None] | None = None) -> Check:
        """Compares everything with everything: texts, spans, vectors, derived indexes.

        Args:
            repair: make a derived index again that is not what it should be.
            on_progress: called with the documents checked so far and in all.
        """
        return verify(self.engine, repair, on_progress)

    def compact(self) -> int:
        """Frees the room of what was removed, and gives how many bytes that was."""
        return self.engine.compact()

    def suggest(self, typed: str, limit: int = 10) -> list[Suggestion]:
        """What somebody who types may mean; see `Vocabulary.suggest`.

        A part of a library (`within`) knows only what its own documents mention.
        """
        if self._part is None:
            return self.vocabulary.suggest(typed, limit)
        mentioned = self.index.mentioned()
        likely = self.vocabulary.suggest(typed, LIKELY)
        return [one for one in likely if one.concept.code in mentioned][:limit]

    def aspects(self, typed: str = "", limit: int = 10) -> list[tuple[str, int]]:
        """The aspects that begin with what was typed, or of which a later word does, with their number of documents."""
        wanted = clean(typed).strip().casefold()
        known = self.index.values(ASPECT, MOST_ASPECTS)
        found = [pair for pair in known if f" {wanted}" in f" {pair[0]}"]
        return sorted(found, key=lambda pair: not pair[0].startswith(wanted))[: max(0, limit)]

    # --- searching ---

    def search(
        self,
        query: str | Query,
        k: int = 10,
        *,
        filters: Filters | Mapping[str, Any] | Iterable[str] | str | None = None,
        mode: str = "hybrid",
        fusion: str = DEFAULT,
        rerank: bool | None = None,
        group: str | None = None,
        neighbours: int = 0,
    ) -> Results:
        """Finds passages.

        Args:
            query: a question, words with operators ("a phrase", -word, +word, field:value), or an entity and an aspect.
            k: how many, at most.
            filters: what passages have to pass, as `Filters.of` reads it. The k best of those that pass are found.
            mode: `lexical` (words), `dense` (meaning) or `hybrid` (both); without an encoder, hybrid is lexical. `cdv`
                (meaning of sentences in their documents) needs a discourse model, and an entity and an aspect; of a
                text, it takes those that it finds there, and says which.
            fusion: of both, by normalised `scores` or by `reciprocal` rank.
            rerank: whether the ranker puts the best candidates in order; if nobody says, it does in hybrid search, and
                one that was given does always.
            group: `document` or `patient`: one hit for each, with the others in it.
            neighbours: how many passages before and after each hit to show.

        Raises:
            CaprError: an option that does not exist, or a mode without its encoder.
        """
        options = Options(k, mode, fusion, group, neighbours)
        if rerank and self.models.ranker is None:
            raise CaprError("there is no ranker to re-rank with. Fix: name its folder, or leave it out.")
        asked = Query(clean(query)) if isinstance(query, str) else query
        parsed = self._parser.parse(asked)
        discourse = self.models.discourse_to_search(self.index) if mode == "cdv" else None
        if discourse is not None:
            parsed.pair = pair_of(asked, parsed)
        passing = about_entities(self._filters(filters) & self._filters(parsed.filters), parsed)
        notices = [*parsed.notices, *self.index.notices(Grain.SENTENCES if discourse else Grain.PASSAGES)]
        encoder = self.models.to_search(self.index, mode, notices)
        reranking = self.models.wants_ranker(mode) if rerank is None else rerank
        ranker = self.models.ranker if reranking else None
        search = PassageSearch(self.index, parsed, passing, encoder, ranker, options, discourse)
        hits, done = search.hits()
        notices += search.notices
        if not parsed.clauses:
            notices.append("the query has no words to look for")
        if not hits:
            notices += passed_by_none(passing, self.index)
        return Results(tuple(hits), done, parsed.expanded, tuple(notices))

    def scores(self, query: str | Query, document: str, *, by: str = "discourse") -> Curve:
        """How much every sentence of a document has to do with the entity and the aspect of a query.

        Args:
            query: an entity, an aspect, or both; or a text, of which it takes those that it finds there.
            document: its id.
            by: what scores them: a `discourse` model, whose vectors know the document around a sentence; the `encoder`
                of passages, which reads each sentence alone; `words`, the share of the query's words that a sentence
                has; or `best`, the first of these that there is.

        Raises:
            CaprError: there is no such document, or nothing of that kind to score its sentences.
        """
        if by not in SCORERS:
            raise CaprError(f"sentences cannot be scored by {by!r}. Fix: use {', '.join(SCORERS)}.")
        whole = self.document(document)
        asked = Query(clean(query)) if isinstance(query, str) else query
        parsed = self._parser.parse(asked)
        entity, aspect = pair_of(asked, parsed)
        passages = self.index.passages_in(whole.id)
        if by == "discourse" or (by == "best" and self.has_discourse):
            return self._by_discourse(whole, entity, aspect, passages)
        places = [stored.entry.passage for stored in passages]
        cut = [(span, passage.heading or "") for passage in places for span in passage.sentences]
        headings = headings_of(places)
        mode = {"words": "lexical", "encoder": "dense"}.get(by, "hybrid")
        encoder = self.models.to_search(self.index, mode, [])
        if encoder is not None and (by == "encoder" or len(cut) <= FEW_SENTENCES):
            key = digest(whole), encoder.identity.digest, self._part.filters if self._part else None
            sentences = self._strip.by_encoder(whole, cut, encoder, (entity, aspect, parsed.text), key)
            return Curve(whole, entity, aspect, sentences, headings, by="encoder")
        sentences = by_words(whole, cut, self.index, (entity, aspect, parsed.text))
        return Curve(whole, entity, aspect, sentences, headings, by="words")

    @property
    def has_discourse(self) -> bool:
        """Whether sentences have vectors of a discourse model that can be asked."""
        if self.index.encoder(Grain.SENTENCES) is None:
            return False
        try:
            return self.models.discourse(self.index) is not None
        except CaprError:
            return False

    def _by_discourse(self, whole: Document, entity: str, aspect: str, passages: Sequence[Stored]) -> Curve:
        discourse = self.models.discourse_to_search(self.index)
        known = self.index.sentences([stored.number for stored in passages])
        if len(known) < len(passages):
            fact = f"the sentences of {whole.id!r} have no vectors yet"
            raise CaprError(f"{fact}. Fix: capr encode {self.path}.")
        same_model(self.index, Grain.SENTENCES, discourse)
        sentences = scored(list(known.values()), discourse.query(entity, aspect))
        headings = headings_of([stored.entry.passage for stored in passages])
        return Curve(whole, entity, aspect, sentences, headings, discourse.threshold)

    # --- asking ---

    def ask(
        self,
        question: str,
        document: str | None = None,
        *,
        filters: Filters | Mapping[str, Any] | Iterable[str] | str | None = None,
        top: int = 3,
        reader: AnswerReader | str | os.PathLike[str] | None = None,
        threshold: float | None = None,
        passages: int = asking.PASSAGES,
    ) -> Answers:
        """Reads the answers to a question out of one document, out of those that pass the filters, or out of all.

        A document that is named is read from its first passage to its last, and so are those that pass filters, if they
        have few pages. Otherwise passages are searched for, and the first ones are read. Answers are ranked by the
        confidence of the reader, whatever the search said.

        Args:
            question: in plain words; operators mean nothing here.
            document: the id of the only one to read.
            filters: what passages have to pass, as in `search`.
            top: how many answers, at most.
            reader: instead of the one that the library was opened with: a folder or an `AnswerReader`.
            threshold: the confidence from which on an answer counts; if not given, that of the reader.
            passages: how many to read, at most, where they are searched for.

        Raises:
            CaprError: there is no question, no such document or no reader.
        """
        begun = time.perf_counter()
        options = asking.Options(top, threshold, passages)
        asked = asking.checked(question)
        model = self.models.reader if reader is None else answer_reader(reader)
        chosen, most = self._filters(filters), float(WHOLE)
        if document is not None:
            chosen &= Filters((Condition(ID, frozenset((self.document(document).id,))),))
            most = math.inf
        paragraphs = every(self.index, chosen, most)
        notices = tuple(passed_by_none(chosen, self.index)) if paragraphs == [] else ()
        if paragraphs is None:
            results = self.search(asking.as_query(asked), passages, filters=chosen)
            paragraphs, notices = list(found_by(results, self.index)), results.notices
        gazetteer = annotator(False, self.vocabulary).gazetteer
        return asking.answered(asked, paragraphs, model, options, gazetteer, notices, begun)

    def _document_filters(self, given: Filters | Mapping[str, Any] | Iterable[str] | None) -> Filters:
        filters = self._filters(given)
        if filters.without:
            raise CaprError("`without` is about the entity of a query, and here is none. Fix: leave it out.")
        return filters

    def _filters(self, given: Filters | Mapping[str, Any] | Iterable[str] | str | None) -> Filters:
        return resolved(Filters.of(given), self.index, self.vocabulary)

    @cached_property
    def _parser(self) -> Parser:
        def rarity(words: list[str]) -> list[float]:
            return list(self.index.rarity(self.index.stems(words)))

        gazetteer = annotator(False, self.vocabulary).gazetteer
        return Parser(gazetteer, lambda name: self.index.has(field_name(name)), rarity)


def _documents(given: Given | Iterable[Given], tell: Callable[[Problem], None]) -> Iterator[Document]:
    """Documents as they are, files and folders read."""
    listed = [given] if isinstance(given, Document | str | os.PathLike) else given
    for one in listed:
        if isinstance(one, Document):
            yield one
        else:
            yield from read(one, on_problem=tell)


def _unusable(document: Document) -> Problem | None:
    if not all(isinstance(part, str) for part in (document.id, document.title, document.text)):
        return Problem("its id, title or text is not a text", "make it one", record=ascii(document.id))
    if not document.id.strip():
        return Problem("a document has no id", "give it one", str(document.metadata.get("file", "")))
    try:
        said = as_text([document.metadata, [a.value for a in document.annotations]])
        for part in (document.id, document.title, document.text, said):
            part.encode()
    except (TypeError, ValueError, RecursionError) as error:
        if not isinstance(error, UnicodeEncodeError):
            fact = f"its metadata cannot be kept ({error})"
            return Problem(fact, "use names and values that JSON knows", record=ascii(document.id))
        fact = f"it holds half of a surrogate pair, U+{ord(error.object[error.start]):04X}"
        return Problem(fact, "write the character itself", record=ascii(document.id))
    return None
