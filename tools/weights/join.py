"""How much words, vectors and ranker should count in a library (`capr.search.fusion.WEIGHTS`), by validation questions.

python tools/weights/join.py PAIRS OUT

PAIRS is what pairs.py has made; OUT/runs has those of wikipedia-bi and wikipedia-cross for the task `wording`, which
train.py and runs.py make: questions of MedQuAD's training part, which neither model has seen. Prints R@1 and R@5.
"""

import gzip
import json
import sys
from itertools import product
from pathlib import Path

from capr.evaluate.measures import measure
from capr.evaluate.scorers import Fused, Reranked, RunScorer, TermScorer
from capr.evaluate.task import Asked, Task
from capr.search import fusion

VIEWS, FORMS = ("opening", "text"), ("tuple", "question")
LEXICAL, RANKER = (0.0, 0.25, 0.5, 1.0), (0.5, 1.0, 2.0, 3.0)  # where vectors count 1


class Words(TermScorer):
    """BM25, which need not score again for each weight."""

    def run(self, task, form, progress):
        if not hasattr(self, "found"):
            self.found = super().run(task, form, progress)
        return self.found


def main(pairs, out):
    with gzip.open(pairs / "wording.task.gz", "rt", encoding="utf-8") as file:
        read = json.load(file)
    print("words vectors ranker " + "".join(f"{f'{form}, {view}':>20}" for view, form in product(VIEWS, FORMS)))
    rows = {"cross-encoder alone": []} | {(words, 1.0, ranker): [] for words, ranker in product(LEXICAL, RANKER)}
    for view, form in product(VIEWS, FORMS):
        task = asked(read, view, form)
        names = (out / "runs" / f"wikipedia-{kind}.wording.{view}.{form}.run" for kind in ("bi", "cross"))
        vectors, ranker = map(RunScorer, names)
        join = Reranked(Fused([Words("bm25"), vectors]), ranker)
        for weights, row in rows.items():
            if weights != "cross-encoder alone":
                fusion.WEIGHTS.update(zip(("lexical", "dense", "rerank"), weights, strict=True))
            run = (ranker if weights == "cross-encoder alone" else join).run(task, "question", lambda done, total: None)
            found = measure(task, run, "", "question", ("R@1", "R@5")).measures
            row.append(f"{found['R@1']:.1%} / {found['R@5']:.1%}")
    for weights, row in rows.items():
        name = weights if isinstance(weights, str) else "{:5} {:7} {:6}".format(*weights)
        print(f"{name:21}" + "".join(f"{cell:>20}" for cell in row))


def asked(read, view, form):
    """The task in one view and form; words are looked for as they are asked."""
    ids = read["ids"]
    queries = [
        Asked(
            one["id"], "", "", one["question"] if form == "question" else one["wordings"][0],
            frozenset(ids[number] for number in one["relevant"]), tuple(ids[number] for number in one["candidates"]),
        )
        for one in read["asked"]
    ]  # fmt: skip
    task = Task("wording", dict(zip(ids, read["passages"], strict=True)), queries,
                dict(zip(ids, read["openings"], strict=True)))  # fmt: skip
    return task.with_openings() if view == "opening" else task


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
