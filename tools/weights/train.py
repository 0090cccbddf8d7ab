"""Train the built-in models and those of docs/results.md on one GPU, and rank the tests with each.

python tools/weights/train.py PAIRS BASES OUT MODEL…

PAIRS is the output of pairs.py. BASES is a folder with the Hugging Face checkpoints bge-small-en-v1.5 and
ms-marco-MiniLM-L-12-v2, and with the encoder and the reader of capr 0.1 as encoder-0.1 and reader-0.1, from which the
built-in models start. Each model goes to OUT/MODEL, its rankings to OUT/rankings, which runs.py reads. Models that
another model starts from or learns from come first. The script skips finished models, and resumes an interrupted run
from its last checkpoint.
"""

import gzip
import json
import sys
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import torch

from capr.models.bi import Bi
from capr.models.cross import Cross
from capr.models.family import Schedule
from capr.models.late import Late
from capr.models.poly import Poly
from capr.models.ranking import Ranking
from capr.supervise.pairs import LabelledPassage, TrainingPairs
from capr.train.ranking import train

BGE, MINILM = "bge-small-en-v1.5", "ms-marco-MiniLM-L-12-v2"
# Files of training data; a passage of a file that is named three times is drawn three times in an epoch.
SHIPPED_DATA = (
    *("wikipedia", "medquad", "notes", "questions", "cases", "squad", "keywords"),
    *("written", "written", "written"),
)
# The views of the tests and of a library, which shows its models title and heading.
ALL_VIEWS = (("text", 1.0), ("opening", 1.0), ("heading", 1.0), ("title", 2.0))
BARE_AND_OPENING = (("text", 1.0), ("opening", 1.0))
BARE_AND_HEADING = (("text", 1.0), ("heading", 1.0))
ARTICLES = ("medquad", "wikipedia")
NOTES = ("notes-hidden", "notes-shown")
CHOICES = ("written-dev", "samples")  # tasks to choose by
RANKED_VIEWS = {"medquad": (("opening", "tuple"),)}  # rankings of tasks that take long; all views and forms of others


@dataclass(frozen=True)
class ModelPlan:
    """The family, data and schedule of a model, and the tasks that measure it."""

    family: Ranking
    pairs: tuple[str, ...]
    schedule: Schedule
    tasks: tuple[str, ...] = ARTICLES
    ship: bool = False
    measured: tuple[str, ...] = ("",)


BI = Bi(base=BGE, negatives=3, pieces=288, views=BARE_AND_OPENING, short=0.25)
POLY = Poly(
    base=BGE, similarity="cosine", temperature=0.03, negatives=3, pieces=288, views=BARE_AND_OPENING, short=0.25
)
CROSS = Cross(base=MINILM, negatives=11, pieces=320, views=BARE_AND_OPENING, short=0.25)
CONTRASTIVE = Schedule(epochs=6, batch=128, learning_rate=5e-5, patience=0)
LISTWISE = Schedule(epochs=2, batch=32, learning_rate=4e-5, patience=0, validations=2)


VALIDATION = 0.02  # share of the documents


def student(layers, learning_rate, tasks=(*CHOICES, "medquad")):
    """Plan a ranker with fewer layers, which starts from layers of the teacher and learns from it."""
    family = replace(
        CROSS,
        base="teacher",
        layers=layers,
        teachers=("teacher",),
        licence="CC BY-SA",
        views=ALL_VIEWS,
        negatives=9,
        validation=VALIDATION,
    )
    return ModelPlan(family, SHIPPED_DATA, replace(LISTWISE, learning_rate=learning_rate), tasks, ship=True)


MODELS = {
    "wikipedia-bi": ModelPlan(BI, ("wikipedia",), CONTRASTIVE, (*ARTICLES, "wording")),
    "wikipedia-separate": ModelPlan(replace(BI, shared=False), ("wikipedia",), replace(CONTRASTIVE, epochs=4)),
    "wikipedia-poly": ModelPlan(POLY, ("wikipedia",), replace(CONTRASTIVE, epochs=4)),
    "wikipedia-cross": ModelPlan(CROSS, ("wikipedia",), LISTWISE, ("wording", *ARTICLES)),
    "teacher": ModelPlan(
        replace(CROSS, base="reader-0.1", views=ALL_VIEWS, validation=VALIDATION),
        SHIPPED_DATA,
        replace(LISTWISE, epochs=1, learning_rate=5e-5),
        CHOICES,
    ),
    "encoder": ModelPlan(
        Late(
            base="encoder-0.1",
            teacher="teacher",
            negatives=3,
            pieces=288,
            views=ALL_VIEWS,
            short=0.25,
            licence="CC BY-SA",
            validation=VALIDATION,
        ),
        SHIPPED_DATA,
        replace(CONTRASTIVE, epochs=3),
        (*CHOICES, "keywords-dev", "medquad"),
        ship=True,
        measured=("whole", "pieces", "both"),
    ),
    "ranker": student(6, 8e-5),
    "ranker4": student(4, 1e-4),
    "notes-bi": ModelPlan(
        replace(BI, base="encoder", views=BARE_AND_HEADING), ("mtsamples", "notes"), CONTRASTIVE, NOTES
    ),
    "notes-cross": ModelPlan(
        replace(CROSS, base="teacher", views=BARE_AND_HEADING), ("mtsamples", "notes"), LISTWISE, NOTES
    ),
}


def main(pairs, bases, out, names):
    start = time.monotonic()

    def log(*words):
        print(f"[{time.monotonic() - start:4.0f} s]", *words, flush=True)

    for name in names:
        model = MODELS[name]
        family = with_paths(model.family, bases, out)
        data = sum(
            (TrainingPairs.load(pairs / f"{data_name}.pairs.gz") for data_name in model.pairs[1:]),
            TrainingPairs.load(pairs / f"{model.pairs[0]}.pairs.gz"),
        )
        log(name, f"{len(data.passages):,} passages, {len(data.draws):,} draws")

        def report_progress(report, name=name):
            if report.scores or report.step % 100 == 0:
                log(name, f"{report.step:,} of {report.steps:,}, loss {report.loss:.3f}", report.scores or "")

        if not (out / name / "training.json").is_file():
            named_family = replace(family, name=name)
            scores = train(data, named_family, model.schedule, out / name, True, report_progress, model.ship)
            log(name, "validation", scores)
        rank(name, with_trained_base(family, out / name), model, pairs, out / "rankings", log)


def with_paths(family, bases, out):
    """Return the settings with the paths of the base and the teachers."""
    base = (bases if (bases / family.base).is_dir() else out) / family.base
    if isinstance(family, Cross):
        family = replace(family, teachers=tuple(str(out / teacher) for teacher in family.teachers))
    if isinstance(family, Bi) and family.teacher:
        family = replace(family, teacher=str(out / family.teacher))
    return replace(family, base=str(base))


def with_trained_base(family, folder):
    """Return the settings that load a trained model unchanged."""
    untaught = {"teachers": ()} if isinstance(family, Cross) else {"teacher": ""} if isinstance(family, Bi) else {}
    return replace(family, base=str(folder), layers=0, **untaught)


def rank(name, family, model, tasks, out, log):
    """Write the scores of all candidates as NAME.TASK.VIEW.FORM.json.gz, and log R@1, R@5 and R@10."""
    out.mkdir(parents=True, exist_ok=True)
    objective = family.objective(TrainingPairs([], []), model.schedule.device, model.schedule.limit)
    objective.model.to(model.schedule.device).eval()
    for task, measured in product(model.tasks, model.measured):
        if measured:
            objective.measured = measured
        with gzip.open(tasks / f"{task}.task.gz", "rt", encoding="utf-8") as file:
            task_data = json.load(file)
        texts = zip(task_data["passages"], task_data["openings"], strict=True)
        passages = TrainingPairs([LabelledPassage(text=text, opening=opening) for text, opening in texts], [])
        forms = {"tuple": 0}
        if task == "wording" and isinstance(family, Bi):
            forms |= {
                f"wording{wording_number}": wording_number
                for wording_number in range(1, len(task_data["asked"][0]["wordings"]))
            }
        if any(query["question"] for query in task_data["asked"]):
            forms["question"] = None
        views = ("opening", "text") if any(task_data["openings"]) else ("text",)
        for view, (form, wording_number) in product(views, forms.items()):
            path = out / f"{name}{measured and '-'}{measured}.{task}.{view}.{form}.json.gz"
            if path.is_file() or (view, form) not in RANKED_VIEWS.get(task, ((view, form),)):
                continue
            lists = [
                (wording_of(query, wording_number), query["candidates"], set(query["relevant"]))
                for query in task_data["asked"]
            ]
            autocast = torch.autocast(model.schedule.device, torch.float16, model.schedule.device == "cuda")
            with torch.no_grad(), autocast:  # not bfloat16, which gives many passages equal scores
                ranked = objective.score_lists(passages, lists, view)
            with gzip.open(path, "wt") as file:
                json.dump([[round(score, 5) for score in scores] for scores in ranked], file)
            log(name, measured, task, view, form, *(f"{recalled(lists, ranked, k):.2%}" for k in (1, 5, 10)))


def wording_of(query, wording_number):
    """Return one wording of a query, or the question of its source."""
    return query["question"] if wording_number is None else query["wordings"][wording_number]


def recalled(lists, ranked, k):
    """Return the mean share of the relevant passages among the first k."""
    total = 0.0
    for (_, candidates, relevant), scores in zip(lists, ranked, strict=True):
        order = sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i]))
        total += len({candidates[i] for i in order[:k]} & relevant) / len(relevant)
    return total / len(lists)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]), sys.argv[4:])
