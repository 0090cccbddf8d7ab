"""Rank the candidates of a task with models and baselines, behind one interface.

The name of a model is `bm25`, `tfidf`, `encoder` or `ranker` (the built-in models), the folder of a model, or a run
file (FILE.run). `a+b` fuses the rankings of `a` and `b`. In `a>b`, `b` re-ranks the best passages of `a`: a ranker, or
an encoder with late interaction. Both are done as in a library, so that `bm25+late>late>ranker` is a whole search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from capr.documents import CaprError
from capr.evaluate.discourse import DiscourseScorer
from capr.evaluate.task import Progress, Run, Task, TaskQuery, sentence_id
from capr.evaluate.term_baselines import Terms
from capr.index.records import PassageKey, PassageMatch
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.inputs import Candidate
from capr.runtime.kinds import kind_of
from capr.runtime.late import maxsim
from capr.runtime.ranker import Keeper, Ranker, rank
from capr.runtime.shipped import shipped
from capr.search.fusion import DEFAULT, FUSIONS, reranked
from capr.search.reranking import COMPARED, RERANKED, RERANKED_AFTER_LATE

TOP = 64  # passages of a ranking of all passages
BASELINES = ("bm25", "bm25-top", "tfidf", "tfidf-top")
BUILT_IN = ("encoder", "ranker")


class Scorer(Protocol):
    """Scores the candidates of every query."""

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        """Return the score of every candidate of every query; higher is better."""


class Reranker(Protocol):
    """Scores chosen candidates of every query."""

    def rerank(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        """Return the scores of the given candidates of each query, without the candidates that it does not know."""


class TermScorer:
    """Scores with BM25 or TF-IDF, with the statistics of all passages.

    Args:
        weighting: the weighting, `bm25` or `tfidf`.
        top: whether to drop candidates outside the best 64 of all passages. CAPR's figures for MIMIC seem to be
            measured this way.
    """

    def __init__(self, weighting: str, top: bool = False) -> None:
        self.weighting, self.top = weighting, top

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        index = Terms(task.passages, self.weighting)
        positions = {id: position for position, id in enumerate(index.ids)}
        run: Run = {}
        for number, query in enumerate(task.queries, 1):
            words = term_query(query, form)
            scores = index.scores(words)
            top_ids = set(index.best(words, TOP)) if self.top else None
            run[query.id] = {
                id: float(scores[positions[id]])
                for id in query.candidates or index.ids
                if top_ids is None or id in top_ids
            }
            progress(number, len(task.queries))
        return run


def term_query(query: TaskQuery, form: str) -> str:
    """Return the words that CDV searches with Lucene: entity and heading, or the question."""
    words = query.question if form == "question" and query.question else f"{query.entity} {query.aspect}"
    return re.sub("[/:-]", " ", words.strip() or query.question)


class EncoderScorer:
    """Scores with a bi-encoder, which encodes each passage once."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        self.encoder = encoder

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        ids = _candidate_ids(task)
        total = len(ids) + len(task.queries)
        batches = []
        for begin in range(0, len(ids), 64):
            batches.append(self.encoder.passages([task.passages[id] for id in ids[begin : begin + 64]]))
            progress(min(begin + 64, len(ids)), total)
        vectors = np.concatenate(batches)
        positions = {id: position for position, id in enumerate(ids)}
        run: Run = {}
        for number, query in enumerate(task.queries, 1):
            scores = vectors @ self.encoder.query(query.query(form).wording)
            run[query.id] = {id: float(scores[positions[id]]) for id in query.candidates or ids}
            progress(len(ids) + number, total)
        return run


class LateScorer:
    """Scores with late interaction, which encodes the word pieces of each passage once."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        self.encoder = encoder

    def rerank(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        """Return the scores of the given candidates of each query."""
        ids = list(dict.fromkeys(id for of_query in candidates.values() for id in of_query))
        total = len(ids) + len(task.queries)
        codes: dict[str, bytes] = {}
        for begin in range(0, len(ids), 64):
            part = ids[begin : begin + 64]
            _, part_codes = self.encoder.passages_with_pieces([task.passages[id] for id in part])
            codes.update(zip(part, part_codes, strict=True))
            progress(len(codes), total)
        run: Run = {}
        for number, query in enumerate(task.queries, 1):
            _, pieces = self.encoder.query_with_pieces(query.query(form).wording)
            chosen = candidates[query.id]
            scores = maxsim(pieces, [codes[id] for id in chosen]).tolist()
            run[query.id] = dict(zip(chosen, scores, strict=True))
            progress(len(ids) + number, total)
        return run


class RankerScorer:
    """Scores with a ranker; a ranker that reads passages in advance reads each passage once."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        return self.rerank(
            task, form, {query.id: query.candidates or tuple(task.passages) for query in task.queries}, progress
        )

    def rerank(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        """Return the scores of the given candidates of each query."""
        keeper = self.ranker if isinstance(self.ranker, Keeper) else None
        all_ids = list(dict.fromkeys(id for ids in candidates.values() for id in ids)) if keeper else []
        texts = [task.passages[id] for id in all_ids]
        read_passages = dict(zip(all_ids, keeper.keep(texts), strict=True)) if keeper else {}
        run: Run = {}
        for number, query in enumerate(task.queries, 1):
            wording, ids = query.query(form).wording, candidates[query.id]
            if keeper:
                scores = keeper.scores_kept(wording, [read_passages[id] for id in ids])
            else:
                scores = self.ranker.scores(wording, [task.passages[id] for id in ids])
            run[query.id] = dict(zip(ids, scores, strict=True))
            progress(number, len(task.queries))
        return run

    def sentences(self, task: Task, form: str, progress: Progress) -> Run | None:
        """Return the scores of the sentences of all candidates, for `Task.of_sentences`.

        The result is None if the ranker scores only passages.
        """
        run: Run = {}
        for number, query in enumerate(task.queries, 1):
            ids = query.candidates or tuple(task.passages)
            passages = [Candidate(task.passages[id], task.sentences.get(id, ())) for id in ids]
            scores = rank(self.ranker, query.query(form).wording, passages).sentences
            if scores is None:
                return None
            run[query.id] = {
                sentence_id(id, span): score
                for id, passage, sentence_scores in zip(ids, passages, scores, strict=True)
                for span, score in zip(passage.sentences, sentence_scores, strict=True)
            }
            progress(number, len(task.queries))
        return run


class RunScorer:
    """Reads scores from a run file in TREC's format, which another program may have written, such as on a GPU."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        from capr.evaluate.measures import read_run

        return read_run(self.path, task)

    def rerank(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        run = self.run(task, form, progress)
        return {query: {id: run[query][id] for id in ids if id in run[query]} for query, ids in candidates.items()}


class Rankings(NamedTuple):
    """The rankings of one query.

    Attributes:
        stages: the name of each stage, as in `capr.search.fusion`, with its ranking.
        ordered: the final ranking.
    """

    stages: list[tuple[str, Sequence[PassageMatch]]]
    ordered: list[PassageMatch]


class Fused:
    """Fuses the rankings of several scorers as a library does: words, and the vectors of one or more models."""

    def __init__(self, parts: Sequence[Scorer], fusion: str = DEFAULT) -> None:
        self.parts, self.fusion = parts, fusion
        self.stages = ["lexical" if isinstance(part, TermScorer) else "dense" for part in parts]

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        return {id: _scores(rankings.ordered) for id, rankings in self.rankings(task, form, progress).items()}

    def rankings(self, task: Task, form: str, progress: Progress) -> dict[str, Rankings]:
        """Return the rankings of every query."""
        runs = [part.run(task, form, progress) for part in self.parts]
        positions = task.positions
        rankings = {}
        for query in task.queries:
            stages: list[tuple[str, Sequence[PassageMatch]]] = [
                (name, _ranking(run[query.id], positions)) for name, run in zip(self.stages, runs, strict=True)
            ]
            rankings[query.id] = Rankings(stages, FUSIONS[self.fusion](stages))
        return rankings


class Reranked:
    """Re-ranks the best passages of the stages before, and joins the scores of all stages as a library does."""

    def __init__(self, first: Scorer, reranker: Reranker) -> None:
        self.first: Fused | Reranked = first if isinstance(first, Fused | Reranked) else Fused([first])
        self.reranker = reranker
        self.stage = "late" if isinstance(reranker, LateScorer) else "rerank"

    @property
    def count(self) -> int:
        """The number of passages to re-rank, as in a library."""
        if self.stage == "late":
            return COMPARED
        is_after_late = isinstance(self.first, Reranked) and self.first.stage == "late"
        return RERANKED_AFTER_LATE if is_after_late else RERANKED

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        return {id: _scores(rankings.ordered) for id, rankings in self.rankings(task, form, progress).items()}

    def rankings(self, task: Task, form: str, progress: Progress) -> dict[str, Rankings]:
        """Return the rankings of every query."""
        first = self.first.rankings(task, form, progress)
        best = {id: [match.key.document for match in before.ordered[: self.count]] for id, before in first.items()}
        run = self.reranker.rerank(task, form, best, progress)
        positions = task.positions
        rankings = {}
        for id, before in first.items():
            stages = [*before.stages, (self.stage, _ranking(run[id], positions))]
            rankings[id] = Rankings(stages, reranked(before.ordered, stages))
        return rankings


def _ranking(scores: Mapping[str, float], positions: Mapping[str, int]) -> list[PassageMatch]:
    """Return scores as a ranking of a stage of a library, best first; each passage counts as a document."""
    return [PassageMatch(PassageKey(id, 0), scores[id], positions[id]) for id in ranked(scores, positions)]


def _scores(ranking: Sequence[PassageMatch]) -> dict[str, float]:
    return {match.key.document: match.score for match in ranking}


def ranked(scores: Mapping[str, float], positions: Mapping[str, int]) -> list[str]:
    """Return passages best first; ties keep the order of the task, which does not depend on the answers."""
    return sorted(scores, key=lambda id: (-scores[id], positions[id]))


# The scorer for a model, by the role of the model.
SCORERS: Mapping[str, Callable[[Any], Scorer]] = {
    "encoder": EncoderScorer,
    "ranker": RankerScorer,
    "discourse": DiscourseScorer,
}


def load(name: str, fusion: str = DEFAULT) -> Scorer:
    """Return the scorer of a name, see the top of this file; `fusion` is the method that joins `a+b`."""
    if ">" in name:
        first, _, last = name.rpartition(">")
        reranker: Any = load(last)
        if isinstance(reranker, EncoderScorer) and reranker.encoder.has_pieces:
            reranker = LateScorer(reranker.encoder)
        if not isinstance(reranker, LateScorer | RankerScorer | RunScorer):
            fix = "name a ranker, or an encoder with late interaction, after the >"
            raise CaprError(f"{last} cannot re-rank passages. Fix: {fix}.")
        return Reranked(load(first, fusion), reranker)
    if "+" in name:
        return Fused([load(part) for part in name.split("+")], fusion)
    if name in BASELINES:
        return TermScorer(name.removesuffix("-top"), name.endswith("-top"))
    if name.endswith(".run"):
        if not Path(name).is_file():
            raise CaprError(f"there is no {name}. Fix: name a run that capr evaluate --run wrote.")
        return RunScorer(Path(name))
    folder = model_folder(name, [*BASELINES, *BUILT_IN])
    kind = kind_of(folder)
    if kind.role not in SCORERS:
        fix = "use capr evaluate reports for a reader, and capr evaluate entities for a tagger"
        raise CaprError(f"{folder} has a {kind.role}, which does not rank passages. Fix: {fix}.")
    return SCORERS[kind.role](kind.runner(folder))


def model_folder(name: str, names: Sequence[str]) -> Path:
    """Return the folder of a built-in model, or the folder with this name.

    Args:
        name: the name of a model, without `+` and `>`.
        names: the names that are allowed here, for the error.

    Raises:
        CaprError: there is no such folder.
    """
    folder = shipped(name) if name in BUILT_IN else Path(name)
    if folder.is_dir():
        return folder
    usable = [other for other in names if other not in BUILT_IN or shipped(other).is_dir()]
    nearest = get_close_matches(name.lower(), usable, 1)
    question = f" Did you mean {nearest[0]}?" if nearest else ""
    fix = f"use {', '.join(usable)}, or the folder of a model"
    raise CaprError(f"there is no model {name}.{question} Fix: {fix}.")


def _candidate_ids(task: Task) -> list[str]:
    """Return the ids of the passages that are candidates of at least one query."""
    if any(not query.candidates for query in task.queries):
        return list(task.passages)
    return list(dict.fromkeys(id for query in task.queries for id in query.candidates))
