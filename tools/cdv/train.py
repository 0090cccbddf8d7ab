"""Train the discourse models of docs/explanation/cdv.md, with or without a GPU, and rank the tests with each.

python tools/cdv/train.py PREPARED OUT MODEL… [--dev] [--encoder FOLDER] [--epochs N] [--weights-only]

PREPARED is the output of prepare.py. Each model goes to OUT/MODEL, its measures to OUT/MODEL/measured.json, and its
rankings to OUT/MODEL/TEST.run, which `capr evaluate --model TEST.run` reads. With --dev, training excludes the tenth of
the articles that serves to choose models, and the script ranks the two development tests instead of the two tests.
--encoder names a folder from `capr train bi`, such as the built-in one: the sentence encoder of `encoder`,
`encoder-space` and `tuned`. With --weights-only, the script ranks nothing. It skips finished models, and resumes an
interrupted run. Besides capr itself, it needs torch, onnx and onnxruntime, and with --encoder transformers.
"""

import argparse
import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from capr.evaluate.measures import write_run
from capr.evaluate.task import Task, TaskQuery
from capr.models.cdv_family import CODE, OURS, PAPER
from capr.models.family import Schedule
from capr.runtime.discourse import OnnxDiscourse
from capr.runtime.subwords import Subwords
from capr.supervise.discourses import TrainingDiscourses
from capr.supervise.split import is_test
from capr.train.cdv import CdvSources, train

DEV_SHARE = 0.28  # as in prepare.py
TESTS, DEV_TESTS = ("medquad", "wikipedia"), ("dev-medquad", "dev-wikipedia")
SHORT = Schedule(epochs=12, batch=8, learning_rate=1e-3)
LONG = Schedule(epochs=50, batch=16, learning_rate=1e-3, patience=0)
TUNING = Schedule(epochs=3, batch=4, learning_rate=2e-5)
TRANSFORMER = replace(OURS, sizes=replace(OURS.sizes, over="transformer"))
MODELS = {  # recipe, schedule, dimensions of word vectors, whether to use an encoder, whether to tune the encoder
    "words": (OURS, SHORT, 300, False, False),
    "words-half": (replace(OURS, sketched=0.5), SHORT, 300, False, False),
    "words-most": (replace(OURS, sketched=0.95), SHORT, 300, False, False),
    "paper": (PAPER, LONG, 128, False, False),
    "code": (CODE, LONG, 128, False, False),
    "transformer": (TRANSFORMER, replace(SHORT, learning_rate=3e-4), 300, False, False),
    "encoder": (OURS, SHORT, 300, True, False),
    "encoder-space": (replace(OURS, space="encoder"), SHORT, 300, True, False),
    "tuned": (replace(OURS, space="encoder"), SHORT, 300, True, True),
}


def main(arguments):
    start = time.monotonic()

    def log(*words):
        print(f"[{time.monotonic() - start:4.0f} s]", *words, flush=True)

    discourses = TrainingDiscourses.load(arguments.prepared / "wikipedia.discourses.gz")
    if arguments.dev:
        documents = [document for document in discourses.documents if not is_test(document.id, DEV_SHARE)]
        discourses = TrainingDiscourses(documents, discourses.entities, discourses.aspects)
    for name in arguments.models:
        recipe, schedule, size, uses_encoder, is_tuned = MODELS[name]
        schedule = replace(schedule, epochs=arguments.epochs or schedule.epochs)
        reads_words = recipe.space != "encoder" or not uses_encoder
        vectors = Subwords.load(arguments.prepared / f"words{size}.npz") if reads_words else None
        descriptions = read_descriptions(arguments.prepared) if recipe.space == "codes" else ()
        sources = CdvSources(
            vectors, arguments.encoder if uses_encoder else "", "", descriptions, TUNING if is_tuned else None
        )

        def report_progress(report, name=name):
            if report.scores or report.step % 100 == 0:
                loss = "" if report.loss is None else f", loss {report.loss:.3f}"
                log(name, report.stage, f"{report.step:,} of {report.steps:,}{loss}", report.scores or "")

        out = arguments.out / name
        if not (out / "training.json").is_file():
            named_recipe = replace(recipe, name=name, licence="CC BY-SA")
            train(discourses, named_recipe, schedule, out, sources, resume=True, progress=report_progress)
        if arguments.weights_only:
            continue
        measures = {test: rank(out, arguments.prepared, test) for test in (DEV_TESTS if arguments.dev else TESTS)}
        (out / "measured.json").write_text(json.dumps(measures, indent=1) + "\n")
        log(name, measures)


def read_descriptions(prepared):
    """Read sentences with the names of the entities that they describe."""
    with gzip.open(prepared / "described.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def rank(folder, prepared, test):
    """Write the ranking of a test, and return R@1, R@10 and MAP in %."""
    with gzip.open(prepared / f"{test}.task.gz", "rt", encoding="utf-8") as file:
        task_data = json.load(file)
    model = OnnxDiscourse(folder)
    documents = [model.vectors(item["sentences"], item["flags"]) for item in task_data["documents"]]
    no_vector = np.zeros(model.identity.dimensions, np.float32)
    passages = np.stack(
        [
            documents[number][begin:end].mean(0) if end > begin else no_vector
            for number, (begin, end) in task_data["passages"]
        ]
    )
    ids, run, queries, measures = task_data["ids"], {}, [], []
    for item in task_data["asked"]:
        scores = passages[item["candidates"]] @ model.query(item["entity"], item["aspect"])
        run[item["id"]] = {
            ids[position]: float(score) for position, score in zip(item["candidates"], scores, strict=True)
        }
        relevant = set(item["relevant"])
        order = sorted(zip(-scores, item["candidates"], strict=True))  # equal scores keep the order of the task
        hits = [position in relevant for _, position in order]
        ranks = [rank for rank, hit in enumerate(hits, 1) if hit]
        precision = sum(number / rank for number, rank in enumerate(ranks, 1)) / len(relevant)
        measures.append((sum(hits[:1]) / len(relevant), sum(hits[:10]) / len(relevant), precision))
        answers = frozenset(ids[position] for position in relevant)
        queries.append(TaskQuery(item["id"], item["entity"], item["aspect"], "", answers, tuple(run[item["id"]])))
    write_run(run, Task(test, dict.fromkeys(ids, ""), queries), folder / f"{test}.run", folder.name)
    values = 100 * np.mean(measures, 0)
    return {name: round(float(value), 2) for name, value in zip(("R@1", "R@10", "MAP"), values, strict=True)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", choices=MODELS)
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--encoder", default="encoder")
    parser.add_argument("--epochs", type=int, default=0, help="replaces the epochs of the model")
    parser.add_argument("--weights-only", action="store_true")
    main(parser.parse_args())
