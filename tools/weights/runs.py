"""Convert the rankings of train.py to runs, which `capr evaluate PROTOCOL --model FILE.run` measures and fuses.

python tools/weights/runs.py PAIRS OUT

PAIRS is the output of pairs.py, OUT that of train.py. The runs go to OUT/runs/MODEL.TASK.VIEW.FORM.run.
"""

import gzip
import json
import sys
from pathlib import Path

from capr.evaluate.measures import write_run
from capr.evaluate.task import Task, TaskQuery


def main(pairs, out):
    (out / "runs").mkdir(exist_ok=True)
    tasks = {}
    for path in sorted((out / "rankings").glob("*.json.gz")):
        model, task, view, form = path.name.removesuffix(".json.gz").split(".")
        if task not in tasks:
            tasks[task] = load_json(pairs / f"{task}.task.gz")
        task_data = tasks[task]
        ids, task_queries = task_data["ids"], task_data["asked"]
        run = {
            query["id"]: dict(zip((ids[number] for number in query["candidates"]), scores, strict=True))
            for query, scores in zip(task_queries, load_json(path), strict=True)
        }
        queries = [TaskQuery(query["id"], "", "", "", frozenset()) for query in task_queries]
        passages = dict(zip(ids, task_data["passages"], strict=True))
        write_run(run, Task(task, passages, queries), out / "runs" / f"{model}.{task}.{view}.{form}.run", model)


def load_json(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
