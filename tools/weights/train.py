"""Trains the models that ship and those of docs/results.md on one GPU, and ranks the tests with each.

python tools/weights/train.py PAIRS BASES OUT MODEL…

PAIRS is what pairs.py has made, BASES a folder with the Hugging Face checkpoints bge-small-en-v1.5 and
ms-marco-MiniLM-L-12-v2; each model goes to OUT/MODEL, its rankings to OUT/rankings, which runs.py reads. A model that
another begins with, or learns from, has to be there. What is there already is not made again, and a run that was
interrupted goes on from its last checkpoint.
"""

import gzip
import json
import sys
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import torch

from capr.train.loop import Schedule
from capr.train.objectives import Reading
from capr.train.pairs import Pairs, Text
from capr.train.retrieval import Recipe, build, train

BGE, MINILM = "bge-small-en-v1.5", "ms-marco-MiniLM-L-12-v2"
SHIP = ("wikipedia", "medquad", "notes", "questions", "cases")
ABOVE = (("text", 1.0), ("opening", 1.0), ("heading", 1.0), ("title", 1.0))  # as in tests, and as a library has them
BOTH = (("text", 1.0), ("opening", 1.0))
HEADINGS = (("text", 1.0), ("heading", 1.0))
ARTICLES = ("medquad", "wikipedia")
NOTES = ("notes-hidden", "notes-shown")
ALL = ("samples", *ARTICLES, *NOTES)
BLEND = 0.4  # of the way back to the base, so that plain questions are still understood


@dataclass(frozen=True)
class Model:
    """What a model is made of, and what it is measured with."""

    recipe: Recipe
    pairs: tuple[str, ...]
    schedule: Schedule
    reading: Reading
    tasks: tuple[str, ...] = ARTICLES
    ship: bool = False


BI = Reading(negatives=3, pieces=288, views=BOTH, short=0.25)
CROSS = Reading(negatives=11, pieces=320, views=BOTH, short=0.25)
SLOW = Schedule(epochs=6, batch=128, learning_rate=5e-5, patience=0)
LISTS = Schedule(epochs=2, batch=32, learning_rate=4e-5, patience=0, validations=2)


def student(layers, learning_rate, tasks=("samples", "medquad")):
    """A ranker of fewer layers that learns from the teacher, and begins with some of its layers."""
    recipe = Recipe("cross", "teacher", layers=layers, teachers=("teacher",), licence="CC BY-SA")
    reading = replace(CROSS, views=ABOVE, negatives=7)
    return Model(recipe, SHIP, replace(LISTS, learning_rate=learning_rate), reading, tasks, ship=True)


MODELS = {
    "wikipedia-bi": Model(Recipe("bi", BGE), ("wikipedia",), SLOW, BI, (*ARTICLES, "wording")),
    "wikipedia-separate": Model(Recipe("bi", BGE, shared=False), ("wikipedia",), replace(SLOW, epochs=4), BI),
    "wikipedia-poly": Model(Recipe("poly", BGE), ("wikipedia",), replace(SLOW, epochs=4), BI),
    "wikipedia-cross": Model(Recipe("cross", MINILM), ("wikipedia",), LISTS, CROSS, ("wording", *ARTICLES)),
    "encoder": Model(
        Recipe("bi", BGE, blend=BLEND, licence="CC BY-SA"), SHIP, replace(SLOW, epochs=4), replace(BI, views=ABOVE),
        ALL, ship=True,
    ),
    "teacher": Model(
        Recipe("cross", MINILM, blend=BLEND), SHIP, LISTS, replace(CROSS, views=ABOVE), ("samples", "medquad"),
    ),
    "ranker": student(6, 8e-5, ALL),
    "ranker8": student(8, 6e-5),
    "ranker4": student(4, 1e-4),
    "notes-bi": Model(Recipe("bi", "encoder"), ("mtsamples", "notes"), SLOW, replace(BI, views=HEADINGS), NOTES),
    "notes-cross": Model(
        Recipe("cross", "teacher"), ("mtsamples", "notes"), LISTS, replace(CROSS, views=HEADINGS), NOTES
    ),
}  # fmt: skip


def main(pairs, bases, out, names):
    begun = time.monotonic()

    def say(*words):
        print(f"[{time.monotonic() - begun:4.0f} s]", *words, flush=True)

    for name in names:
        model = MODELS[name]
        recipe = located(model.recipe, bases, out)
        data = sum((Pairs.load(pairs / f"{one}.pairs.gz") for one in model.pairs[1:]),
                   Pairs.load(pairs / f"{model.pairs[0]}.pairs.gz"))  # fmt: skip
        say(name, f"{len(data.passages):,} passages, {len(data.draws):,} draws")

        def told(report, name=name):
            if report.scores or report.step % 100 == 0:
                say(name, f"{report.step:,} of {report.steps:,}, loss {report.loss:.3f}", report.scores or "")

        if not (out / name / "training.json").is_file():
            named = replace(recipe, name=name)
            scores = train(data, named, model.reading, model.schedule, out / name, True, told, model.ship)
            say(name, "validation", scores)
        rank(name, replace(recipe, base=str(out / name), layers=0, teachers=()), model, pairs, out / "rankings", say)


def located(recipe, bases, out):
    """The recipe with the paths of its base and its teachers."""
    base = bases / recipe.base if recipe.base in (BGE, MINILM) else out / recipe.base
    return replace(recipe, base=str(base), teachers=tuple(str(out / teacher) for teacher in recipe.teachers))


def rank(name, recipe, model, tasks, out, say):
    """Writes the scores of all candidates, as NAME.TASK.VIEW.FORM.json.gz, and says R@1 and R@5."""
    out.mkdir(parents=True, exist_ok=True)
    objective = build(Pairs([], []), recipe, model.reading, model.schedule.device)
    objective.model.to(model.schedule.device).eval()
    for task in model.tasks:
        with gzip.open(tasks / f"{task}.task.gz", "rt", encoding="utf-8") as file:
            read = json.load(file)
        texts = zip(read["passages"], read["openings"], strict=True)
        passages = Pairs([Text(text=text, opening=opening) for text, opening in texts], [])
        forms = {"tuple": 0}
        if task == "wording" and recipe.kind == "bi":
            forms |= {f"wording{place}": place for place in range(1, len(read["asked"][0]["wordings"]))}
        if any(one["question"] for one in read["asked"]):
            forms["question"] = None
        views = ("opening", "text") if any(read["openings"]) else ("text",)
        for view, (form, place) in product(views, forms.items()):
            path = out / f"{name}.{task}.{view}.{form}.json.gz"
            if path.is_file():
                continue
            lists = [(worded(one, place), one["candidates"], set(one["relevant"])) for one in read["asked"]]
            half = torch.autocast(model.schedule.device, torch.float16, model.schedule.device == "cuda")
            with torch.no_grad(), half:  # not bfloat16, by which many passages are equal
                ranked = objective.ranked(passages, lists, view)
            with gzip.open(path, "wt") as file:
                json.dump([[round(score, 5) for score in scores] for scores in ranked], file)
            say(name, task, view, form, *(f"{recalled(lists, ranked, k):.2%}" for k in (1, 5, 10)))


def worded(one, place):
    """A query in one of its wordings, or as the question of its source."""
    return one["question"] if place is None else one["wordings"][place]


def recalled(lists, ranked, k):
    """The mean share of the passages that answer among the first k."""
    total = 0.0
    for (_, candidates, relevant), scores in zip(lists, ranked, strict=True):
        order = sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i]))
        total += len({candidates[i] for i in order[:k]} & relevant) / len(relevant)
    return total / len(lists)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]), sys.argv[4:])
