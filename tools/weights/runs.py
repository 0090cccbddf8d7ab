"""Writes the rankings of train.py as runs, which `capr evaluate PROTOCOL --model FILE.run` measures and fuses.

python tools/weights/runs.py PAIRS OUT

PAIRS is what pairs.py has made, OUT what train.py has; the runs go to OUT/runs/MODEL.TASK.VIEW.FORM.run.
"""

import gzip
import json
import sys
from pathlib import Path

from capr.evaluate.measures import write_run
from capr.evaluate.task import Asked, Task


def main(pairs, out):
    (out / "runs").mkdir(exist_ok=True)
    tasks = {}
    for path in sorted((out / "rankings").glob("*.json.gz")):
        model, task, view, form = path.name.removesuffix(".json.gz").split(".")
        if task not in tasks:
            tasks[task] = load(pairs / f"{task}.task.gz")
        read = tasks[task]
        ids, asked = read["ids"], read["asked"]
        found = {
            one["id"]: dict(zip((ids[number] for number in one["candidates"]), scores, strict=True))
            for one, scores in zip(asked, load(path), strict=True)
        }
        queries = [Asked(one["id"], "", "", "", frozenset()) for one in asked]
        passages = dict(zip(ids, read["passages"], strict=True))
        write_run(found, Task(task, passages, queries), out / "runs" / f"{model}.{task}.{view}.{form}.run", model)


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
