"""Protocols that search a library, as a user does: BEIR's folders and the built-in questions.

Reference: Thakur et al., BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Retrieval Models, 2021.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from capr import samples
from capr.annotate.query import Query
from capr.documents import CaprError, Document, Span, read
from capr.evaluate.protocol import LibraryProtocol
from capr.evaluate.scorers import model_folder
from capr.evaluate.task import OnTask, Progress, Run, Task, TaskQuery
from capr.models.family import option
from capr.runtime.kinds import kind_of
from capr.runtime.manifest import with_article
from capr.runtime.shipped import shipped
from capr.search import Library
from capr.search.fusion import DEFAULT
from capr.search.models import NONE
from capr.segment import Passage, passages

DEPTH = 100  # passages or documents in a ranking
HEADERS = (  # names of the first column of qrels
    "query-id",
    "queryid",
    "query",
    "qid",
    "q-id",
    "id",
    "question-id",
    "question",
    "topic-id",
    "topic",
)
CANNOT = "this protocol searches a library, and a library cannot search with"
USABLE = "name bm25, an encoder, or bm25+encoder, and a ranker after >"
MISPLACED = {  # where the name of a model belongs, by its role
    "ranker": "name it after >, as in bm25>{folder} or bm25+encoder>{folder}",
    "encoder": "name it before >, as in bm25+{folder}: there, late interaction also applies, if the encoder has it",
}
UNSUPPORTED = {"tfidf", "bm25-top", "tfidf-top"}  # baselines that a library does not have


@dataclass(frozen=True, kw_only=True)
class Beir(LibraryProtocol):
    """Any BEIR folder in a library: every query over the whole corpus.

    --data has corpus.jsonl, queries.jsonl and qrels.tsv or qrels/test.tsv.

    Example: capr evaluate beir --data scifact --model bm25+encoder
    """

    forms: ClassVar[Sequence[str]] = ("question",)

    data: Path = option(help="The data set.", metavar="PATH")

    def ask(
        self, model: str, form: str, fusion: str, limit: int, progress: Progress, on_task: OnTask
    ) -> tuple[Task, Run]:
        return beir(self.data, model, progress, limit=limit, fusion=fusion, on_task=on_task)


@dataclass(frozen=True, kw_only=True)
class Samples(LibraryProtocol):
    """The built-in questions, in a library of the samples.

    Example: capr evaluate samples --model bm25
    """

    forms: ClassVar[Sequence[str]] = ("question", "tuple")
    limited: ClassVar[bool] = False

    def ask(
        self, model: str, form: str, fusion: str, limit: int, progress: Progress, on_task: OnTask
    ) -> tuple[Task, Run]:
        return shipped_samples(model, form, progress, fusion, on_task)


@dataclass(frozen=True)
class Setting:
    """The mode and the models of a library, from the name of a model.

    >>> Setting.of("bm25").mode, Setting.of("out/bi").mode, Setting.of("bm25+out/bi>out/cross").ranker
    ('lexical', 'dense', 'out/cross')
    """

    mode: str
    encoder: str = NONE
    ranker: str = NONE

    @classmethod
    def of(cls, name: str) -> Setting:
        """Parse a name: `bm25`, an encoder, or both with `+`, and optionally a ranker after `>`."""
        if runs := [part for part in re.split("[+>]", name) if part.endswith(".run")]:
            compare = f"compare another model with this run by --against {runs[0]}"
            raise CaprError(f"{CANNOT} {name}, because {runs[0]} is a run. Fix: {USABLE}; {compare}.")
        first_stage, arrow, ranker = name.partition(">")
        parts = first_stage.split("+")
        encoders = [_folder(part) for part in parts if part != "bm25"]
        is_valid = all(parts) and bool(ranker) == bool(arrow) and ">" not in ranker
        if not is_valid or len(encoders) > 1 or len(parts) > 1 + len(encoders) or set(parts) & UNSUPPORTED:
            raise CaprError(f"{CANNOT} {name}. Fix: {USABLE}.")
        mode = "lexical" if not encoders else "hybrid" if "bm25" in parts else "dense"
        return cls(mode, encoders[0] if encoders else NONE, _folder(ranker) if ranker else NONE)

    def check(self) -> Setting:
        """Return the setting; raise CaprError if the folder of a model is missing, or has another kind of model."""
        slots = (self.encoder, ("bm25", "encoder"), "encoder"), (self.ranker, ("ranker",), "ranker")
        for model, names, role in slots:
            if model != NONE:
                folder = model_folder(model, names)
                actual = kind_of(folder).role
                if actual != role:
                    fix = MISPLACED.get(actual, USABLE).format(folder=folder)
                    raise CaprError(f"{CANNOT} {with_article(actual)} ({folder}) as its {role}. Fix: {fix}.")
        return self

    def library(self, path: Path) -> Library:
        """Open a library with these models."""
        return Library(path, encoder=self.encoder, ranker=self.ranker)


def _folder(name: str) -> str:
    return str(shipped(name)) if name in ("encoder", "ranker") else name


def beir(
    data: Path,
    model: str,
    progress: Progress,
    split: str = "test",
    limit: int = 0,
    fusion: str = DEFAULT,
    on_task: OnTask | None = None,
) -> tuple[Task, Run]:
    """Search the whole corpus of a BEIR folder for its queries; a document has the score of its best passage.

    A relevant document that the corpus lacks counts as not found, as in other tools. The task has a notice about it.
    """
    setting = Setting.of(model).check()
    corpus_path = data / "corpus.jsonl"
    queries_path = data / "queries.jsonl"
    qrels_path = data / "qrels" / f"{split}.tsv"
    if not qrels_path.is_file() and (data / "qrels.tsv").is_file():
        qrels_path = data / "qrels.tsv"
    for path in (corpus_path, queries_path, qrels_path):
        if not path.is_file():
            fix = "name a folder with corpus.jsonl, queries.jsonl and qrels.tsv (or qrels/test.tsv)"
            raise CaprError(f"there is no {path}. Fix: {fix}.")
    texts_by_id = {record["_id"]: record["text"] for record in _read_lines(queries_path, "_id", "text")}
    qrels = _read_qrels(qrels_path, texts_by_id)
    documents = [
        Document(record["_id"], record["text"] or record.get("title") or " ", record.get("title") or "")
        for record in _read_lines(corpus_path, "_id", "text")
    ]
    passages = {document.id: "" for document in documents}
    notices = _unknown_ids(qrels, texts_by_id, passages, qrels_path)
    queries = [
        TaskQuery(id, "", "", text, frozenset(qrels[id]), grades=qrels[id])
        for id, text in texts_by_id.items()
        if qrels.get(id)
    ]
    queries = queries[:limit] if limit else queries
    task = Task("beir", passages, queries, notices=notices)
    if on_task:
        on_task(task)

    def search(library: Library, query: TaskQuery) -> dict[str, float]:
        text_query = without_operators(query.question)
        hits = (
            library.search(text_query, DEPTH, mode=setting.mode, fusion=fusion, group="document") if text_query else ()
        )
        return {hit.document: hit.score for hit in hits}

    return task, search_all(task, setting, documents, search, progress)


def shipped_samples(
    model: str, form: str, progress: Progress, fusion: str = DEFAULT, on_task: OnTask | None = None
) -> tuple[Task, Run]:
    """Search for the built-in questions, each in its collection or in the notes of its patient.

    A passage is relevant if an answer begins in it. The task leaves out questions without an answer. Depending on
    `form`, it has either plain questions or pairs of entity and aspect.
    """
    setting = Setting.of(model).check()
    questions = {
        question.id: question
        for question in samples.questions()
        if question.answers and (question.question is None) == (form == "tuple")
    }
    collections = {
        name: list(read(samples.folder() / name, strict=True))
        for name in sorted({question.collection for question in questions.values()})
    }
    passages_by_id = {document.id: passages(document) for documents in collections.values() for document in documents}
    queries = []
    for id, question in questions.items():
        relevant: dict[str, tuple[Span, ...]] = {}
        for document_id in dict.fromkeys(answer.document for answer in question.answers):
            answers = [answer.span for answer in question.answers if answer.document == document_id]
            relevant |= answering_passages(passages_by_id[document_id], answers)
        pair_and_question = question.entity or "", question.aspect or "", question.question or ""
        groups = {"collection": question.collection}
        queries.append(
            TaskQuery(id, *pair_and_question, frozenset(relevant), groups=groups, sentences=without_empty(relevant))
        )
    texts, sentences = {}, {}
    for document in (document for documents in collections.values() for document in documents):
        for passage in passages_by_id[document.id]:
            texts[passage_id(passage)] = document[passage.span]
            sentences[passage_id(passage)] = sentences_of(passage)
    task = Task("samples", texts, queries, sentences=sentences)
    if on_task:
        on_task(task)
    run: Run = {}
    for name, documents in collections.items():
        with tempfile.TemporaryDirectory(prefix="capr-") as folder, setting.library(Path(folder) / name) as library:
            library.add(documents)
            for query in queries:
                question = questions[query.id]
                if question.collection == name:
                    filters = {"patient": question.patient} if question.patient else None
                    words = without_operators(query.question) or Query(entity=query.entity, aspect=query.aspect)
                    hits = library.search(words, DEPTH, mode=setting.mode, fusion=fusion, filters=filters)
                    run[query.id] = {passage_id(hit.passage): hit.score for hit in hits}
                    progress(len(run), len(queries))
    return task, run


def passage_id(passage: Passage) -> str:
    """Return the id of a passage in a task."""
    return f"{passage.document}:{passage.span.begin}"


def sentences_of(passage: Passage) -> tuple[Span, ...]:
    """Return the sentences of a passage as spans of its text."""
    begin = passage.span.begin
    return tuple(Span(sentence.begin - begin, sentence.end - begin) for sentence in passage.sentences)


def answering_passages(passages: Iterable[Passage], answers: Collection[Span]) -> dict[str, tuple[Span, ...]]:
    """Return the passages of a document in which an answer begins, with their sentences that contain an answer.

    Args:
        passages: all passages of the document.
        answers: the answers, as spans of the document's text.

    Returns:
        The sentences by the id of the passage, as spans of the passage's text; none if a sentence boundary splits all
        answers.
    """
    answering = {}
    for passage in passages:
        if any(passage.span.begin <= answer.begin < passage.span.end for answer in answers):
            pairs = zip(passage.sentences, sentences_of(passage), strict=True)
            answering[passage_id(passage)] = tuple(
                inside for sentence, inside in pairs if any(sentence.covers(answer) for answer in answers)
            )
    return answering


def without_empty(sentences: Mapping[str, tuple[Span, ...]]) -> dict[str, tuple[Span, ...]]:
    """Return the passages that have sentences."""
    return {passage: spans for passage, spans in sentences.items() if spans}


def search_all(
    task: Task,
    setting: Setting,
    documents: Sequence[Document],
    search: Callable[[Library, TaskQuery], dict[str, float]],
    progress: Progress,
) -> Run:
    """Add the documents to a temporary library, and search it for every query."""
    run: Run = {}
    with tempfile.TemporaryDirectory(prefix="capr-") as folder, setting.library(Path(folder) / "corpus") as library:
        done = 0

        def count_committed(ids: Sequence[str]) -> None:
            nonlocal done
            done += len(ids)
            progress(done, len(documents) + len(task.queries))

        for problem in library.add(documents, on_commit=count_committed).problems:
            raise CaprError(f"the library cannot hold the whole corpus: {problem}")
        for number, query in enumerate(task.queries, 1):
            run[query.id] = search(library, query)
            progress(len(documents) + number, len(documents) + len(task.queries))
    return run


def without_operators(question: str) -> Query | None:
    """Return a question without the quotes, signs and colons that are operators; None if it has no words."""
    words = " ".join(re.sub(r'(?<!\S)[+-]+|[":]', " ", question).split())
    return Query(words) if words else None


def _read_lines(path: Path, *names: str) -> Iterator[dict[str, str]]:
    """Yield the objects of a file of JSON Lines, whose texts `names` are required; the first is the id.

    Raises:
        CaprError: a line is no such object, or two lines have the same id.
    """
    lines_by_id: dict[str, int] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except ValueError as error:
                record, fact = None, f"the line is not JSON ({error})"
            else:
                fact = _record_fault(record, names)
            if fact:
                fix = f"write one object per line with {' and '.join(names)}"
                raise CaprError(f"{path}, line {number}: {fact}. Fix: {fix}.")
            id = record[names[0]]
            if id in lines_by_id:
                fact = f"{names[0]} {id!r} is also on line {lines_by_id[id]}"
                raise CaprError(f"{path}, line {number}: {fact}. Fix: give every line an {names[0]} of its own.")
            lines_by_id[id] = number
            yield record


def _record_fault(record: object, names: Sequence[str]) -> str:
    """Return what is wrong with a record that needs these texts; empty if nothing is."""
    if not isinstance(record, dict):
        return "the line is not an object"
    if missing := [name for name in names if name not in record]:
        return f"the object has no {' and no '.join(missing)}"
    wrong = [name for name in names if not isinstance(record[name], str)]
    return f"{' and '.join(wrong)} must be text in quotation marks" if wrong else ""


def _read_qrels(path: Path, queries: Collection[str]) -> dict[str, dict[str, int]]:
    """Read the grades of the relevant documents, by query. A first line that names the columns is a header.

    Args:
        path: the file.
        queries: the ids of the queries. A line that begins with one of them is no header.

    Raises:
        CaprError: a line is neither a judgement nor a header.
    """
    qrels: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            row = line.rstrip("\r\n").split("\t")
            is_number = re.fullmatch(r"\s*-?\d+\s*", row[-1], re.ASCII)
            if len(row) in (3, 4) and is_number:
                if int(row[-1]) > 0:
                    qrels.setdefault(row[0], {})[row[-2]] = int(row[-1])
            elif number > 1 or len(row) not in (3, 4) or not _names_queries(row[0]) or row[0] in queries:
                header = "" if number > 1 else f", and not a header, which begins with {HEADERS[0]}"
                fix = "write query, document and relevance (a whole number) with tabs between"
                raise CaprError(f"{path}, line {number} is not a judgement{header}. Fix: {fix}.")
    return qrels


def _names_queries(column: str) -> bool:
    """Return whether the first column of a header has this name.

    >>> _names_queries("Query ID"), _names_queries("qid"), _names_queries("q1")
    (True, True, False)
    """
    return re.sub(r"[\W_]+", "-", column.strip().lower()).strip("-") in HEADERS


def _unknown_ids(
    qrels: Mapping[str, Mapping[str, int]], queries: Collection[str], documents: Collection[str], path: Path
) -> list[str]:
    """Return a notice about the ids of queries, and one about those of documents, that only the qrels have.

    Raises:
        CaprError: no judgement has both a known query and a known document.
    """
    unknown_queries = [query for query in qrels if query not in queries]
    unknown_documents = list(
        dict.fromkeys(document for grades in qrels.values() for document in grades if document not in documents)
    )
    facts = {
        "queries.jsonl lacks": (unknown_queries, "query", "queries", "ignored"),
        "corpus.jsonl lacks": (unknown_documents, "document", "documents", "counted as not found"),
    }
    notices = []
    for lacks, (ids, singular, plural, effect) in facts.items():
        if ids:
            noun, verb = (singular, "is") if len(ids) == 1 else (plural, "are")
            which = "" if len(ids) == 1 else "the first is "
            notices.append(f"{lacks} {len(ids):,} {noun} of {path} ({which}{ids[0]!r}), which {verb} {effect}")
    if not any(document in documents for query in queries for document in qrels.get(query, ())):
        cause = f": {'; '.join(notices)}" if notices else ""
        fix = "write qrels with the _id of these queries and documents, and a relevance above 0 for an answer"
        raise CaprError(f"{path} has no relevant document for any query{cause}. Fix: {fix}.")
    return notices
