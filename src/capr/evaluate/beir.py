"""BEIR's folders in a library: every query over the whole corpus.

Reference: Thakur et al., BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Retrieval Models, 2021.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from capr.documents import CaprError, Document
from capr.evaluate.protocol import LibraryProtocol
from capr.evaluate.task import OnTask, Progress, Run, Task, TaskQuery
from capr.evaluate.through_library import DEPTH, Setting, search_all, without_operators
from capr.models.family import option
from capr.search import Library
from capr.search.fusion import DEFAULT

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
