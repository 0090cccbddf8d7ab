"""Trains the discourse models of docs/cdv.md, on a GPU or not, and ranks the tests with each.

python tools/cdv/train.py PREPARED OUT MODEL… [--dev] [--encoder FOLDER] [--epochs N] [--weights-only]

PREPARED is what prepare.py has made. Each model goes to OUT/MODEL, what is measured to OUT/MODEL/measured.json, and its
rankings to OUT/MODEL/TEST.run, which `capr evaluate --model TEST.run` reads. With --dev the tenth of the articles by
which models are chosen is left out of training, and the two development tests are ranked instead of the two tests.
--encoder names a folder that capr train bi has made, such as the one that ships: the sentence encoder of `encoder`,
`encoder-space` and `tuned`. What is there already is not made again, and a run that was interrupted goes on.
With --weights-only nothing is ranked.
Besides capr itself it needs torch, onnx and onnxruntime, and with --encoder transformers; what else capr imports is not
used.
"""

import argparse
import gzip
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import standins  # noqa: F401

from capr.evaluate.measures import write_run
from capr.evaluate.split import is_test
from capr.evaluate.task import Asked, Task
from capr.index.discourse import load_discourse
from capr.index.subwords import Subwords
from capr.models.cdv import CODE
from capr.train.cdv import Sources, train
from capr.train.cdv_recipe import OURS, PAPER
from capr.train.discourses import Discourses
from capr.train.loop import Schedule

DEV = 0.28  # as in prepare.py
TESTS, DEV_TESTS = ("medquad", "wikipedia"), ("dev-medquad", "dev-wikipedia")
SHORT = Schedule(epochs=12, batch=8, learning_rate=1e-3)
LONG = Schedule(epochs=50, batch=16, learning_rate=1e-3, patience=0)
TUNING = Schedule(epochs=3, batch=4, learning_rate=2e-5)
TRANSFORMER = replace(OURS, sizes=replace(OURS.sizes, over="transformer"))
MODELS = {  # recipe, schedule, word vectors, whether the encoder reads sentences, and whether it is tuned
    "words": (OURS, SHORT, 300, False, False),
    "words-half": (replace(OURS, sketched=0.5), SHORT, 300, False, False),
    "words-most": (replace(OURS, sketched=0.95), SHORT, 300, False, False),
    "paper": (PAPER, LONG, 128, False, False),
    "code": (replace(PAPER, sizes=CODE, loss="element", means=("unit",)), LONG, 128, False, False),
    "transformer": (TRANSFORMER, replace(SHORT, learning_rate=3e-4), 300, False, False),
    "encoder": (OURS, SHORT, 300, True, False),
    "encoder-space": (replace(OURS, space="encoder"), SHORT, 300, True, False),
    "tuned": (replace(OURS, space="encoder"), SHORT, 300, True, True),
}


def main(given):
    begun = time.monotonic()

    def say(*words):
        print(f"[{time.monotonic() - begun:4.0f} s]", *words, flush=True)

    discourses = Discourses.load(given.prepared / "wikipedia.discourses.gz")
    if given.dev:
        kept = [lesson for lesson in discourses.lessons if not is_test(lesson.id, DEV)]
        discourses = Discourses(kept, discourses.entities, discourses.aspects)
    for name in given.models:
        recipe, schedule, size, pieces, tuned = MODELS[name]
        schedule = replace(schedule, epochs=given.epochs or schedule.epochs)
        reads_words = recipe.space != "encoder" or not pieces
        vectors = Subwords.load(given.prepared / f"words{size}.npz") if reads_words else None
        described = read_described(given.prepared) if recipe.space == "codes" else ()
        sources = Sources(vectors, given.encoder if pieces else "", "", described, TUNING if tuned else None)

        def told(stage, report, name=name):
            if report.scores or report.step % 100 == 0:
                say(name, stage, f"{report.step:,} of {report.steps:,}, loss {report.loss:.3f}", report.scores or "")

        out = given.out / name
        if not (out / "training.json").is_file():
            named = replace(recipe, name=name, licence="CC BY-SA")
            train(discourses, named, schedule, out, sources, resume=True, told=told)
        if given.weights_only:
            continue
        measured = {test: rank(out, given.prepared, test) for test in (DEV_TESTS if given.dev else TESTS)}
        (out / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
        say(name, measured)


def read_described(prepared):
    """Sentences with the names of the entities that they describe."""
    with gzip.open(prepared / "described.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def rank(folder, prepared, test):
    """Writes the ranking of a test, and gives R@1, R@10 and MAP in %."""
    with gzip.open(prepared / f"{test}.task.gz", "rt", encoding="utf-8") as file:
        read = json.load(file)
    model = load_discourse(folder)
    documents = [model.vectors(one["sentences"], one["flags"]) for one in read["documents"]]
    none = np.zeros(model.identity.dimensions, np.float32)
    passages = np.stack([
        documents[number][first:last].mean(0) if last > first else none for number, (first, last) in read["passages"]
    ])  # fmt: skip
    ids, run, asked, found = read["ids"], {}, [], []
    for one in read["asked"]:
        scores = passages[one["candidates"]] @ model.query(one["entity"], one["aspect"])
        run[one["id"]] = {ids[place]: float(score) for place, score in zip(one["candidates"], scores, strict=True)}
        relevant = set(one["relevant"])
        order = sorted(zip(-scores, one["candidates"], strict=True))  # with the same score, as they stand in the task
        hits = [place in relevant for _, place in order]
        places = [place for place, hit in enumerate(hits, 1) if hit]
        precision = sum(number / place for number, place in enumerate(places, 1)) / len(relevant)
        found.append((sum(hits[:1]) / len(relevant), sum(hits[:10]) / len(relevant), precision))
        answers = frozenset(ids[place] for place in relevant)
        asked.append(Asked(one["id"], one["entity"], one["aspect"], "", answers, tuple(run[one["id"]])))
    write_run(run, Task(test, dict.fromkeys(ids, ""), asked), folder / f"{test}.run", folder.name)
    values = 100 * np.mean(found, 0)
    return {name: round(float(value), 2) for name, value in zip(("R@1", "R@10", "MAP"), values, strict=True)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", choices=MODELS)
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--encoder", default="encoder")
    parser.add_argument("--epochs", type=int, default=0, help="if not those of the model")
    parser.add_argument("--weights-only", action="store_true")
    main(parser.parse_args())
