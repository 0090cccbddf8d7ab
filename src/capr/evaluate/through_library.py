"""What protocols that search a library share, and the first of them: the built-in questions."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from capr import samples
from capr.annotate.query import Query
from capr.documents import CaprError, Document, Span, read
from capr.evaluate.protocol import LibraryProtocol
from capr.evaluate.scorers import model_folder
from capr.evaluate.task import OnTask, Progress, Run, Task, TaskQuery
from capr.runtime.kinds import kind_of
from capr.runtime.manifest import with_article
from capr.runtime.shipped import shipped
from capr.search import Library
from capr.search.fusion import DEFAULT
from capr.search.models import NONE
from capr.segment import Passage, passages

DEPTH = 100  # passages or documents in a ranking
CANNOT = "this protocol searches a library, and a library cannot search with"
USABLE = "name bm25, an encoder, or bm25+encoder, and a ranker after >"
MISPLACED = {  # where the name of a model belongs, by its role
    "ranker": "name it after >, as in bm25>{folder} or bm25+encoder>{folder}",
    "encoder": "name it before >, as in bm25+{folder}: there, late interaction also applies, if the encoder has it",
}
UNSUPPORTED = {"tfidf", "bm25-top", "tfidf-top"}  # baselines that a library does not have


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
