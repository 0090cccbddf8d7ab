"""The library: documents on disk, and the search over them. Each operation has its own file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from capr.annotate import Query
from capr.annotate.completion import Suggestion
from capr.deprecation import renamed_arguments
from capr.documents import Document, Problem
from capr.index import Patient, StoredPassage
from capr.search import adding, asking, contents, passages, removing, scoring
from capr.search.adding import AddResult, DocumentSource
from capr.search.answers import Answers
from capr.search.curve import Curve
from capr.search.encoding import Progress, encode
from capr.search.facets import FACETS, Facets, count_facets
from capr.search.finding import find
from capr.search.fusion import DEFAULT
from capr.search.hit import Results
from capr.search.open_library import GivenDiscourse, GivenEncoder, GivenReader, OpenLibrary
from capr.search.resources import GivenFilters


class Library(OpenLibrary):
    """Documents in a folder, searched by words and by meaning.

    Several processes may search while one process adds. Committed documents survive a crash.

    Args:
        path: the folder, which the first `add` creates; or `scheme://...` for the engine of that scheme.
        encoder: makes the vectors of passages: a folder, an `Encoder`, or "none"; default: the encoder that the library
            remembers, or the built-in encoder for a new library.
        ranker: re-ranks the best candidates: a folder, a `Ranker`, or "none"; default: the built-in ranker.
        discourse: makes the vectors of sentences: a folder, a `Discourse`, or "none"; default: the discourse model that
            the library remembers.
        reader: marks answers: a folder, an `AnswerReader`, or "none"; default: the built-in reader.
        vocabulary: a vocabulary with your own names.
        max_words: the maximum words of a passage; default: the limit that the library remembers (250 for a new
            library). Documents cut with another limit are cut again when you add them again.

    Example:
        >>> import capr, tempfile
        >>> library = Library(tempfile.mkdtemp() + "/notes")
        >>> library.add(Document("n1", "PLAN: Start aspirin after the heart attack.")).added
        1
        >>> hit = library.search("myocardial infarction")[0]
        >>> hit.document, [hit[span] for span in hit.highlights]
        ('n1', ['heart attack'])
    """

    # --- changing ---

    @renamed_arguments(model="discourse")
    def add(
        self,
        documents: DocumentSource | Iterable[DocumentSource],
        *,
        replace: bool = False,
        tagger: bool = False,
        discourse: GivenDiscourse = None,
        on_commit: Callable[[Sequence[str]], None] | None = None,
        on_problem: Callable[[Problem], None] | None = None,
    ) -> AddResult:
        """Add documents. After an interruption, call it with the same documents again to continue.

        Args:
            documents: one document or several, or files and folders to read.
            replace: replace documents with a known id and other contents, instead of reporting a problem.
            tagger: also find entities that the vocabulary lacks, which is many times slower.
            discourse: the discourse model to use from now on, as if the library had been opened with it.
            on_commit: called with the ids of documents after their commit.
            on_problem: called with each problem.

        Raises:
            CaprError: another process is writing, the encoder is missing, or another encoder made the vectors.
        """
        self.use(discourse=discourse)
        self.create()
        with self.index.writing() as writer:
            return adding.add(
                documents,
                self.index,
                writer,
                self.models,
                self.resources.annotator(tagger),
                self.cutting,
                replace=replace,
                on_commit=on_commit,
                on_problem=on_problem,
            )

    def remove(self, ids: str | Iterable[str] = (), *, filters: GivenFilters = None) -> int:
        """Remove documents by their ids, or all that match the filters; return the number of removed documents."""
        return removing.remove(self.resources, ids, filters)

    def encode(
        self, encoder: GivenEncoder = None, on_commit: Progress | None = None, *, discourse: GivenDiscourse = None
    ) -> int:
        """Make the vectors that passages or sentences lack, and return the number of passages that got vectors.

        An encoder makes the vectors of passages, a discourse model those of sentences. By default, the models that the
        library remembers make the missing vectors; if it remembers none, the built-in encoder makes them. With the
        encoder "none", only sentences get vectors. The vectors of a new model replace those of another model. After an
        interruption, call it again to continue.

        Args:
            encoder: a folder, an `Encoder`, or "none".
            on_commit: called with the number of passages done, and of all passages; first for the encoder, then for
                the discourse model.
            discourse: a folder, a `Discourse`, or "none".
        """
        self.use(encoder, discourse)
        return encode(self.resources, encoder, discourse, on_commit)

    def document(self, id: str) -> Document:
        """Return a document, unchanged since it was added."""
        return contents.document(self.index, id)

    def documents(self, filters: GivenFilters = None) -> Iterator[Document]:
        """Yield all documents, or those that match the filters, in the order in which they were added."""
        return self.index.documents(self.resources.document_filters(filters))

    def passage(self, document: str, index: int) -> StoredPassage:
        """Return a passage of a document, with its mentions, by its index, counted from 0.

        Raises:
            CaprError: the library has no such document, or the document no such passage.
        """
        return contents.passage(self.index, document, index)

    def passages(self, document: str) -> Sequence[StoredPassage]:
        """Return all passages of a document, with their mentions.

        Raises:
            CaprError: the library has no such document.
        """
        return contents.passages(self.index, document)

    def ids(self, filters: GivenFilters = None) -> list[str]:
        """Return the ids of all documents, or of those that match the filters, in the order of their addition."""
        return list(self.index.ids(self.resources.document_filters(filters)))

    def facets(self, filters: GivenFilters = None, names: Sequence[str] = FACETS) -> Facets:
        """Count the documents that match the filters for each patient, type, source, aspect and month.

        The counts of a field ignore its own filter, so that they show the alternatives to its value.
        """
        return count_facets(self.index, self.resources.document_filters(filters), names)

    @renamed_arguments(typed="prefix")
    def patients(self, prefix: str = "", filters: GivenFilters = None) -> list[Patient]:
        """Return the patients whose name begins with the prefix: number of documents, first and last day of each."""
        return contents.patients(self.resources, prefix, filters)

    @renamed_arguments(typed="prefix", limit="k")
    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        """Return completions of a prefix; see `Vocabulary.suggest`.

        A part of a library (`within`) completes only names of entities that its own documents mention.
        """
        return contents.suggest(self.resources, prefix, k)

    @renamed_arguments(typed="prefix", limit="k")
    def aspects(self, prefix: str = "", k: int = 10) -> list[tuple[str, int]]:
        """Return the aspects in which a word begins with the prefix, with their numbers of documents."""
        return contents.aspects(self.index, prefix, k)

    # --- searching and asking ---

    def search(
        self,
        query: str | Query,
        k: int = 10,
        *,
        filters: GivenFilters = None,
        mode: str = "hybrid",
        fusion: str = DEFAULT,
        rerank: bool | None = None,
        group: str | None = None,
        neighbours: int = 0,
    ) -> Results:
        """Return the passages that answer a query, best first.

        Args:
            query: a question, words with operators ("a phrase", -word, +word, field:value), or an entity and an aspect.
            k: the maximum number of hits.
            filters: conditions on passages, in any form that `Filters.of` reads. The search ranks only passages that
                match them.
            mode: `lexical` (words), `dense` (meaning) or `hybrid` (both); without an encoder, hybrid is lexical. `cdv`
                (meaning of sentences in their documents) needs a discourse model, an entity and an aspect. In a text
                query, it recognises the entity and the aspect, and a notice names them.
            fusion: the method that combines words and meaning: normalised `scores` or `reciprocal` rank.
            rerank: whether the ranker re-ranks the best candidates; default: in hybrid search, and in every mode if the
                library was opened with a ranker.
            group: `document` or `patient`: one hit for each, with its further hits in `others`.
            neighbours: the number of passages to return before and after each hit.

        Raises:
            CaprError: an option is invalid, or the mode lacks its model.
        """
        return find(self.resources, query, passages.SearchOptions(k, mode, fusion, group, neighbours), filters, rerank)

    def scores(self, query: str | Query, document: str, *, by: str = "discourse") -> Curve:
        """Score every sentence of a document for the entity and the aspect of a query.

        Args:
            query: an entity, an aspect, or both; or a text, in which they are recognised.
            document: the id of the document.
            by: the scorer. A `discourse` model reads a sentence in the context of its document; the `encoder` of
                passages reads each sentence alone; `words` is the share of the query's words in the sentence; `best` is
                the first of these that is available.

        Raises:
            CaprError: the library has no such document, or the scorer is not available.
        """
        return scoring.scores(self.resources, query, document, by)

    @renamed_arguments(top="k")
    def ask(
        self,
        question: str,
        document: str | None = None,
        *,
        filters: GivenFilters = None,
        k: int = 3,
        reader: GivenReader = None,
        threshold: float | None = None,
        passages: int = asking.PASSAGES,
    ) -> Answers:
        """Answer a question from one document, from the documents that match the filters, or from all documents.

        The reader reads every passage of a named document, and of the documents that match the filters if these are
        short. Otherwise, a search chooses the passages to read. The confidence of the reader alone ranks the answers.

        Args:
            question: in plain words; operators of queries mean nothing here.
            document: the id of the only document to read; default: all.
            filters: conditions on passages, as in `search`.
            k: the maximum number of answers.
            reader: a folder or an `AnswerReader`; default: the reader that the library was opened with.
            threshold: the minimum confidence of an answer; default: the threshold of the reader.
            passages: the maximum number of passages to read, if a search chooses them.

        Raises:
            CaprError: there is no question, no such document or no reader.
        """
        options = asking.AskOptions(k, threshold, passages)
        return asking.ask_library(self.resources, question, options, document, filters, reader)
