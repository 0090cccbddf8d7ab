"""Models and baselines behind one interface: how each ranks the candidates of a task.

A model is named by `bm25`, `tfidf`, `encoder` and `ranker` (those that ship), the folder of a model, or the ranking
that one gave elsewhere (FILE.run); `a+b` fuses their rankings as a library does, and with `a>b` the ranker `b` reads
the best of `a` to put them in order, as in a library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from capr.documents import CaprError
from capr.evaluate.task import Asked, Task
from capr.evaluate.terms import Terms
from capr.index import Found, OnnxEncoder
from capr.index.discourse import is_discourse, load_discourse
from capr.search.fusion import DEFAULT, FUSIONS, reranked
from capr.search.models import load_model, shipped
from capr.search.passages import RERANKED
from capr.search.rerank import OnnxPoly, Ranker

Run = dict[str, dict[str, float]]  # by query, by passage
Progress = Callable[[int, int], None]  # how many queries of how many
TOP = 64  # passages of BM25's list over everything


class Scorer(Protocol):
    """Ranks candidates."""

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        """The score of every candidate of every query, the higher the better."""


class Reranker(Protocol):
    """Ranks some of the candidates."""

    def of(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        """The scores of the candidates that are given for each query; those of which it knows nothing are left out."""


class TermScorer:
    """BM25 or TF-IDF, with the statistics of all passages.

    Args:
        weighting: `bm25` or `tfidf`.
        top: keeps only candidates that are among the best 64 of all passages, which is how the figures that CAPR gives
            for MIMIC seem to have come about.
    """

    def __init__(self, weighting: str, top: bool = False) -> None:
        self.weighting, self.top = weighting, top

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        index = Terms(task.passages, self.weighting)
        places = {id: place for place, id in enumerate(index.ids)}
        found: Run = {}
        for number, asked in enumerate(task.asked, 1):
            words = term_query(asked, form)
            scores = index.scores(words)
            kept = set(index.best(words, TOP)) if self.top else None
            found[asked.id] = {
                id: float(scores[places[id]]) for id in asked.candidates or index.ids if kept is None or id in kept
            }
            progress(number, len(task.asked))
        return found


def term_query(asked: Asked, form: str) -> str:
    """What CDV asks Lucene for: entity and heading, or the question."""
    words = asked.question if form == "question" and asked.question else f"{asked.entity} {asked.aspect}"
    return re.sub("[/:-]", " ", words.strip() or asked.question)


class EncoderScorer:
    """A bi-encoder: each passage is encoded once."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        self.encoder = encoder

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        wanted = _wanted(task)
        total = len(wanted) + len(task.asked)
        parts = []
        for begin in range(0, len(wanted), 64):
            parts.append(self.encoder.passages([task.passages[id] for id in wanted[begin : begin + 64]]))
            progress(min(begin + 64, len(wanted)), total)
        vectors = np.concatenate(parts)
        places = {id: place for place, id in enumerate(wanted)}
        found: Run = {}
        for number, asked in enumerate(task.asked, 1):
            scores = vectors @ self.encoder.query(asked.query(form).wording)
            found[asked.id] = {id: float(scores[places[id]]) for id in asked.candidates or wanted}
            progress(len(wanted) + number, total)
        return found


class RankerScorer:
    """A cross-encoder, or a poly-encoder, which keeps the passages that it has read."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        return self.of(
            task, form, {asked.id: asked.candidates or tuple(task.passages) for asked in task.asked}, progress
        )

    def of(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        """The scores of some candidates."""
        poly = self.ranker if isinstance(self.ranker, OnnxPoly) else None
        wanted = list(dict.fromkeys(id for some in candidates.values() for id in some)) if poly else []
        kept = dict(zip(wanted, poly.keep([task.passages[id] for id in wanted]), strict=True)) if poly else {}
        found: Run = {}
        for number, asked in enumerate(task.asked, 1):
            query, ids = asked.query(form).wording, candidates[asked.id]
            if poly:
                scores: Sequence[float] = poly.scores_kept(query, [kept[id] for id in ids])
            else:
                scores = self.ranker.scores(query, [task.passages[id] for id in ids])
            found[asked.id] = dict(zip(ids, scores, strict=True))
            progress(number, len(task.asked))
        return found


class RunScorer:
    """A ranking of all candidates that was made elsewhere, such as on a GPU, in TREC's format."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        from capr.evaluate.measures import read_run

        return read_run(self.path, task)

    def of(self, task: Task, form: str, candidates: Mapping[str, Sequence[str]], progress: Progress) -> Run:
        whole = self.run(task, form, progress)
        return {query: {id: whole[query][id] for id in ids if id in whole[query]} for query, ids in candidates.items()}


class Fused:
    """Several rankings as one, as a library joins them: words, and vectors of one or several models."""

    def __init__(self, parts: Sequence[Scorer], fusion: str = DEFAULT) -> None:
        self.parts, self.fusion = parts, fusion
        self.stages = ["lexical" if isinstance(part, TermScorer) else "dense" for part in parts]

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        runs = [part.run(task, form, progress) for part in self.parts]
        ids = list(task.passages)
        return {
            asked.id: _scores(self.fused([run[asked.id] for run in runs], task.places), ids) for asked in task.asked
        }

    def fused(self, parts: Sequence[Mapping[str, float]], places: Mapping[str, int]) -> list[Found]:
        """What the rankings say of a query's candidates as one."""
        return FUSIONS[self.fusion]([(n, _ranking(s, places)) for n, s in zip(self.stages, parts, strict=True)])


class Reranked:
    """The best of a first stage, read by a ranker and put in the order of all stages together, as a library does."""

    def __init__(self, first: Scorer, ranker: Reranker) -> None:
        self.first, self.ranker = first, ranker

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        first = self.first if isinstance(self.first, Fused) else Fused([self.first])
        runs = [part.run(task, form, progress) for part in first.parts]
        places, ids = task.places, list(task.passages)
        orders = {asked.id: first.fused([run[asked.id] for run in runs], places) for asked in task.asked}
        best = {id: [ids[found.number] for found in order[:RERANKED]] for id, order in orders.items()}
        read = self.ranker.of(task, form, best, progress)
        joined: Run = {}
        for id, order in orders.items():
            stages = [(name, _ranking(run[id], places)) for name, run in zip(first.stages, runs, strict=True)]
            joined[id] = _scores(reranked(order, [*stages, ("rerank", _ranking(read[id], places))]), ids)
        return joined


def _ranking(scores: Mapping[str, float], places: Mapping[str, int]) -> list[Found]:
    """As a stage of a library gives it: passages by number, best first."""
    return [Found(places[id], scores[id]) for id in ranked(scores, places)]


def _scores(ranking: Sequence[Found], ids: Sequence[str]) -> dict[str, float]:
    return {ids[found.number]: found.score for found in ranking}


def ranked(scores: Mapping[str, float], places: Mapping[str, int]) -> list[str]:
    """Passages best first; those with the same score in the order of the task, which knows no answers."""
    return sorted(scores, key=lambda id: (-scores[id], places[id]))


def load(name: str, fusion: str = DEFAULT) -> Scorer:
    """The scorer that a name means, see the top of this file; `fusion` says how `a+b` are joined."""
    if ">" in name:
        first, _, last = name.rpartition(">")
        ranker = load(last)
        if not isinstance(ranker, RankerScorer | RunScorer):
            fix = "name a cross- or poly-encoder after the >"
            raise CaprError(f"{last} cannot put passages in order. Fix: {fix}.")
        return Reranked(load(first, fusion), ranker)
    if "+" in name:
        return Fused([load(part) for part in name.split("+")], fusion)
    terms = {"bm25", "tfidf", "bm25-top", "tfidf-top"}
    if name in terms:
        return TermScorer(name.removesuffix("-top"), name.endswith("-top"))
    if name.endswith(".run"):
        if not Path(name).is_file():
            raise CaprError(f"there is no {name}. Fix: name a run that capr evaluate --run has written.")
        return RunScorer(Path(name))
    ours = {one: shipped(one) for one in ("encoder", "ranker")}
    folder = ours.get(name, Path(name))
    if not folder.is_dir():
        known = [*sorted(terms), *(one for one, place in ours.items() if place.is_dir())]
        fix = f"use {', '.join(known)}, or the folder of a model"
        raise CaprError(f"there is no model {name}. Fix: {fix}.")
    if is_discourse(folder):
        from capr.evaluate.discourse import DiscourseScorer

        return DiscourseScorer(load_discourse(folder))
    model = load_model(folder)
    return EncoderScorer(model) if isinstance(model, OnnxEncoder) else RankerScorer(model)


def _wanted(task: Task) -> list[str]:
    """The passages that are a candidate of some query."""
    if any(not asked.candidates for asked in task.asked):
        return list(task.passages)
    return list(dict.fromkeys(id for asked in task.asked for id in asked.candidates))
