"""Protocols that go through a library, as a user's questions do: BEIR's folders, and the questions that ship.

Reference: Thakur et al., BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Retrieval Models, 2021.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from capr import samples
from capr.annotate.query import Query
from capr.documents import CaprError, Document, read
from capr.evaluate.scorers import Progress, Run
from capr.evaluate.task import Asked, Task
from capr.search import Library
from capr.search.fusion import DEFAULT
from capr.search.models import NONE, shipped
from capr.segment import passages

DEPTH = 100  # passages or documents that are ranked
OTHERS = {"tfidf", "bm25-top", "tfidf-top"}  # baselines that a library does not have


@dataclass(frozen=True)
class Setting:
    """How a library is to search: what a model's name means here.

    >>> Setting.of("bm25").mode, Setting.of("out/bi").mode, Setting.of("bm25+out/bi>out/cross").ranker
    ('lexical', 'dense', 'out/cross')
    """

    mode: str
    encoder: str = NONE
    ranker: str = NONE

    @classmethod
    def of(cls, name: str) -> Setting:
        """`bm25`, an encoder, both with `+`, and a ranker after `>`."""
        first, arrow, ranker = name.partition(">")
        parts = first.split("+")
        encoders = [_folder(part) for part in parts if part != "bm25"]
        whole = all(parts) and bool(ranker) == bool(arrow) and ">" not in ranker
        if not whole or len(encoders) > 1 or len(parts) > 1 + len(encoders) or set(parts) & OTHERS:
            fix = "name bm25, an encoder, or bm25+encoder, and a ranker after >"
            raise CaprError(f"a library cannot search with {name}. Fix: {fix}.")
        mode = "lexical" if not encoders else "hybrid" if "bm25" in parts else "dense"
        return cls(mode, encoders[0] if encoders else NONE, _folder(ranker) if ranker else NONE)

    def library(self, path: Path) -> Library:
        """A library at that path that searches so."""
        return Library(path, encoder=self.encoder, ranker=self.ranker)


def _folder(name: str) -> str:
    return str(shipped(name)) if name in ("encoder", "ranker") else name


def beir(
    data: Path, model: str, progress: Progress, split: str = "test", limit: int = 0, fusion: str = DEFAULT
) -> tuple[Task, Run]:
    """The queries of a BEIR folder over its whole corpus; a document is as good as its best passage."""
    corpus, queries, judged = data / "corpus.jsonl", data / "queries.jsonl", data / "qrels" / f"{split}.tsv"
    if not judged.is_file() and (data / "qrels.tsv").is_file():
        judged = data / "qrels.tsv"
    for needed in (corpus, queries, judged):
        if not needed.is_file():
            fix = "name a folder with corpus.jsonl, queries.jsonl and qrels.tsv (or qrels/test.tsv)"
            raise CaprError(f"there is no {needed}. Fix: {fix}.")
    relevant = _judgements(judged)
    asked = [
        Asked(record["_id"], "", "", record["text"], frozenset(relevant[record["_id"]]))
        for record in _lines(queries, "_id", "text")
        if relevant.get(record["_id"])
    ]
    if not asked:
        fix = "give it the judgements of its own queries"
        raise CaprError(f"{judged} judges no query of {queries}. Fix: {fix}.")
    asked = asked[:limit] if limit else asked
    documents = [
        Document(record["_id"], record["text"] or record.get("title") or " ", record.get("title") or "")
        for record in _lines(corpus, "_id", "text")
    ]
    task = Task("beir", {document.id: "" for document in documents}, asked)
    setting = Setting.of(model)

    def found(library: Library, query: Asked) -> dict[str, float]:
        words = _plain(query.question)
        hits = library.search(words, DEPTH, mode=setting.mode, fusion=fusion, group="document") if words else ()
        return {hit.document: hit.score for hit in hits}

    return task, _asked(task, setting, documents, found, progress)


def shipped_samples(model: str, form: str, progress: Progress, fusion: str = DEFAULT) -> tuple[Task, Run]:
    """The questions that ship, each asked of its collection or of its patient's notes.

    A passage answers if an answer begins in it. Questions without an answer are left out, and so are, by `form`, plain
    questions or pairs of entity and aspect.
    """
    setting = Setting.of(model)
    questions = {q.id: q for q in samples.questions() if q.answers and (q.question is None) == (form == "tuple")}
    collections = {
        name: list(read(samples.folder() / name, strict=True))
        for name in sorted({q.collection for q in questions.values()})
    }
    spans = {document.id: [p.span for p in passages(document)] for some in collections.values() for document in some}
    texts = {
        f"{document.id}:{span.begin}": document[span]
        for some in collections.values()
        for document in some
        for span in spans[document.id]
    }
    asked = []
    for id, question in questions.items():
        answering = {
            f"{answer.document}:{span.begin}"
            for answer in question.answers
            for span in spans[answer.document]
            if span.begin <= answer.span.begin < span.end
        }
        what = question.entity or "", question.aspect or "", question.question or ""
        asked.append(Asked(id, *what, frozenset(answering), groups={"collection": question.collection}))
    run: Run = {}
    for name, documents in collections.items():
        with tempfile.TemporaryDirectory(prefix="capr-") as folder, setting.library(Path(folder) / name) as library:
            library.add(documents)
            for one in asked:
                question = questions[one.id]
                if question.collection == name:
                    filters = {"patient": question.patient} if question.patient else None
                    query = _plain(one.question) or Query(entity=one.entity, aspect=one.aspect)
                    hits = library.search(query, DEPTH, mode=setting.mode, fusion=fusion, filters=filters)
                    run[one.id] = {f"{hit.document}:{hit.passage.span.begin}": hit.score for hit in hits}
                    progress(len(run), len(asked))
    return Task("samples", texts, asked), run


def _asked(
    task: Task, setting: Setting, documents: list[Document], found: Callable[[Library, Asked], dict[str, float]],
    progress: Progress,
) -> Run:  # fmt: skip
    run: Run = {}
    with tempfile.TemporaryDirectory(prefix="capr-") as folder, setting.library(Path(folder) / "corpus") as library:
        done = 0

        def kept(ids: Sequence[str]) -> None:
            nonlocal done
            done += len(ids)
            progress(done, len(documents) + len(task.asked))

        for problem in library.add(documents, on_commit=kept).problems:
            raise CaprError(f"the corpus cannot be kept whole: {problem}")
        for number, query in enumerate(task.asked, 1):
            run[query.id] = found(library, query)
            progress(len(documents) + number, len(documents) + len(task.asked))
    return run


def _plain(question: str) -> Query | None:
    """A question whose quotes, signs and colons are no operators; None if there is nothing else."""
    words = " ".join(re.sub(r'(?<!\S)[+-]+|[":]', " ", question).split())
    return Query(words) if words else None


def _lines(path: Path, *names: str) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not all(isinstance(record[name], str) for name in names):
                    raise ValueError(f"{' or '.join(names)} is not a text")
            except (ValueError, KeyError, TypeError) as error:
                fix = f"write one object per line with {' and '.join(names)}"
                raise CaprError(f"{path}, line {number}: {type(error).__name__} {error}. Fix: {fix}.") from error
            yield record


def _judgements(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            row = line.rstrip("\r\n").split("\t")
            is_number = re.fullmatch(r"\s*-?\d+\s*", row[-1], re.ASCII)
            if not line.strip() or (number == 1 and not is_number):
                continue  # blank, or the header
            if len(row) not in (3, 4) or not is_number:
                fix = "write query, document and relevance with tabs between"
                raise CaprError(f"{path}, line {number} is not a judgement. Fix: {fix}.")
            if int(row[-1]) > 0:
                found.setdefault(row[0], set()).add(row[-2])
    return found
