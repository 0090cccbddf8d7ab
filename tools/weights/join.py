"""Measure weights for words, vectors and ranker in a library (`capr.search.fusion.WEIGHTS`), on validation questions.

python tools/weights/join.py PAIRS OUT

PAIRS is the output of pairs.py. OUT/runs has the runs of wikipedia-bi and wikipedia-cross for the task `wording`, from
train.py and runs.py. Its questions are from MedQuAD's training part, which is in the training data of neither model.
The script prints R@1 and R@5.
"""

import gzip
import json
import sys
from itertools import product
from pathlib import Path

from capr.evaluate.measures import measure
from capr.evaluate.scorers import Fused, Reranked, RunScorer, TermScorer
from capr.evaluate.task import Task, TaskQuery
from capr.search import fusion

VIEWS, FORMS = ("opening", "text"), ("tuple", "question")
LEXICAL, RANKER = (0.0, 0.25, 0.5, 1.0), (0.5, 1.0, 2.0, 3.0)  # the weight of vectors is 1


class CachedTermScorer(TermScorer):
    """BM25 that scores only once, for all weights."""

    def run(self, task, form, progress):
        if not hasattr(self, "cached_run"):
            self.cached_run = super().run(task, form, progress)
        return self.cached_run


def main(pairs, out):
    with gzip.open(pairs / "wording.task.gz", "rt", encoding="utf-8") as file:
        task_data = json.load(file)
    print("words vectors ranker " + "".join(f"{f'{form}, {view}':>20}" for view, form in product(VIEWS, FORMS)))
    rows = {"cross-encoder alone": []} | {(words, 1.0, ranker): [] for words, ranker in product(LEXICAL, RANKER)}
    for view, form in product(VIEWS, FORMS):
        task = make_task(task_data, view, form)
        run_paths = (out / "runs" / f"wikipedia-{kind}.wording.{view}.{form}.run" for kind in ("bi", "cross"))
        vectors, ranker = map(RunScorer, run_paths)
        join = Reranked(Fused([CachedTermScorer("bm25"), vectors]), ranker)
        for weights, row in rows.items():
            if weights != "cross-encoder alone":
                fusion.WEIGHTS.update(zip(("lexical", "dense", "rerank"), weights, strict=True))
            run = (ranker if weights == "cross-encoder alone" else join).run(task, "question", lambda done, total: None)
            measures = measure(task, run, "", "question", ("R@1", "R@5")).measures
            row.append(f"{measures['R@1']:.1%} / {measures['R@5']:.1%}")
    for weights, row in rows.items():
        name = weights if isinstance(weights, str) else "{:5} {:7} {:6}".format(*weights)
        print(f"{name:21}" + "".join(f"{cell:>20}" for cell in row))


def make_task(task_data, view, form):
    """Make the task in one view and form; the search for words uses the spelling of the query."""
    ids = task_data["ids"]
    queries = [
        TaskQuery(
            query["id"],
            "",
            "",
            query["question"] if form == "question" else query["wordings"][0],
            frozenset(ids[number] for number in query["relevant"]),
            tuple(ids[number] for number in query["candidates"]),
        )
        for query in task_data["asked"]
    ]
    task = Task(
        "wording",
        dict(zip(ids, task_data["passages"], strict=True)),
        queries,
        dict(zip(ids, task_data["openings"], strict=True)),
    )
    return task.with_openings() if view == "opening" else task


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
