"""Trains readers on one GPU, and measures each on files that it has not seen.

python tools/reader/train.py REPORTS BASES OUT MODEL… [--weights-only]

REPORTS is what prepare.py has made: NAME.json.gz to learn from, and dev-NAME.json.gz to measure with; BASES a folder
with the Hugging Face checkpoint ms-marco-MiniLM-L-12-v2. Each model goes to OUT/MODEL, what is measured to
OUT/MODEL/measured.json. A model that another begins with, learns from or is a mean of has to be there: the reader that
ships is made by warm, reader-1, reader-2, reader-3, readers, refined-1, refined-2, refined-3, reader, of which those
that differ by a number may be made side by side. What is there already is not made again, and a run that was
interrupted goes on from its last checkpoint. With --weights-only nothing is exported or measured. Besides capr itself
it needs torch, transformers, onnx, onnxruntime, tokenizers and numpy; what else capr imports is not used.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import standins  # noqa: F401
import torch
from safetensors.torch import load_file

from capr.evaluate.answers import f1
from capr.search.reader import sigmoid
from capr.supervise.reports import read_reports
from capr.train import card
from capr.train.loop import Schedule
from capr.train.questions import Source, posed, whole_reports
from capr.train.reader import CHECKPOINT, Recipe, build, finish, keep, train, validated, write_manifest

MINILM = "ms-marco-MiniLM-L-12-v2"
LENGTH = 900  # characters of a paragraph to measure with
QUESTIONS, PARAGRAPHS = 500, 40  # of a file to measure whole reports with
CALIBRATION = ("squad", "covid", "clinical", "clauses", "visits")
WARM = {"texts": 1.0}
SOURCES = {
    "squad": 1.0,
    "articles": 1.0,
    "clinical": 0.3,
    "visits": 1.0,
}  # files, and how often their questions are drawn


@dataclass(frozen=True)
class Model:
    """What a model is made of."""

    recipe: Recipe
    schedule: Schedule
    ship: bool = True
    sources: dict[str, float] = field(default_factory=lambda: SOURCES)


@dataclass(frozen=True)
class Mean:
    """The mean of the weights of models that began with the same.

    Reference: Wortsman et al., Model soups: averaging weights of multiple fine-tuned models, 2022.
    """

    of: tuple[str, ...]
    ship: bool = False


SEEDS = (1, 2, 3)
SHORT = Schedule(epochs=2, batch=96, learning_rate=5e-5, patience=0)
LONG = Schedule(epochs=3, batch=96, learning_rate=1.1e-4, patience=0, validations=2)
STUDENT = Schedule(epochs=5, batch=96, learning_rate=1.6e-4, patience=0)
BASED, WARMED = Recipe(MINILM, licence="CC BY-SA"), Recipe("warm", licence="CC BY-SA")
REFINED = replace(WARMED, base="readers", alike=0.5)
MODELS = {
    "warm": Model(BASED, replace(LONG, epochs=1), ship=False, sources=WARM),
    **{f"reader-{seed}": Model(WARMED, replace(LONG, seed=seed), ship=False) for seed in SEEDS},
    "readers": Mean(tuple(f"reader-{seed}" for seed in SEEDS)),
    **{f"refined-{seed}": Model(REFINED, replace(SHORT, seed=seed), ship=False) for seed in SEEDS},
    "reader": Mean(tuple(f"refined-{seed}" for seed in SEEDS), ship=True),
    "cold": Model(BASED, LONG, ship=False),
    "alike": Model(replace(WARMED, alike=0.5), LONG, ship=False),
    "much": Model(WARMED, LONG, ship=False, sources=SOURCES | {"clinical": 1.0}),
    "unvisited": Model(WARMED, LONG, ship=False, sources=SOURCES | {"visits": 0.0}),
    "reader6": Model(replace(REFINED, base="reader", layers=6, teacher="reader"), STUDENT),
}


def main(reports, bases, out, names, weights_only):
    begun = time.monotonic()

    def say(*words):
        print(f"[{time.monotonic() - begun:4.0f} s]", *words, flush=True)

    for name in names:
        model = MODELS[name]
        if (out / name / "training.json").is_file():
            say(name, "is there")
        elif isinstance(model, Mean):
            say(name, average(model, reports, out, name, model.ship and not weights_only))
        else:
            recipe = located(replace(model.recipe, name=name), bases, out)
            sources = [
                Source(read_reports(reports / f"{file}.json.gz", print), weight, name=file)
                for file, weight in model.sources.items()
                if weight
            ]
            say(name, {one.name: f"{len(one.reports):,} reports, {one.questions:,} questions" for one in sources})

            def told(report, name=name):
                if report.scores or report.step % 100 == 0:
                    say(name, f"{report.step:,} of {report.steps:,}, loss {report.loss:.3f}", report.scores or "")

            onnx = model.ship and not weights_only
            say(name, train(sources, recipe, model.schedule, out / name, True, told, onnx=onnx))
        if weights_only or name == "warm":
            continue  # the latter has seen no question
        files = sorted(reports.glob("dev-*.json.gz"))
        measured = {path.name.partition(".")[0]: measure(out / name, path) for path in files}
        (out / name / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
        for file, scores in measured.items():
            say(name, file, {measure: round(100 * value, 2) for measure, value in scores.items()})


def average(model, reports, out, name, onnx):
    """Makes the mean of models; it is calibrated on the files to choose by, which none of them has learned from."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    states = [load_file(out / one / CHECKPOINT / "model.safetensors") for one in model.of]
    mean = {key: torch.stack([state[key].float() for state in states]).mean(0) for key in states[0]}
    objective = build(replace(WARMED, base=str(out / model.of[0]), name=name), Schedule().device)
    objective.model.answerer.load_state_dict(mean)
    keep(objective, folder)
    write_manifest(objective, folder)
    scores = {}
    if onnx:
        held = [Source(read_reports(reports / f"dev-{file}.json.gz", print), name=file) for file in CALIBRATION]
        length = objective.recipe.length
        judged = posed(held, "mean", lengths=(length, length))
        scores = finish(objective, held, judged, None, folder, seed=1)
    made = json.loads((out / model.of[0] / "training.json").read_text())
    settings = made["settings"] | {"mean of": ", ".join(model.of)}
    card.write(folder, name, "reader", made["data"], made["licence"], settings, scores)
    return scores


def located(recipe, bases, out):
    """The recipe with the paths of its base and its teacher."""
    base = (bases if recipe.base == MINILM else out) / recipe.base
    return replace(recipe, base=str(base), teacher=str(out / recipe.teacher) if recipe.teacher else "")


def measure(folder, path):
    """F1 and EM as in SQuAD v2, what is answered and refused, and the answer of the best paragraph of whole reports."""
    objective = build(Recipe(str(folder)), Schedule().device)
    objective.model.to(objective.reader.device).eval()
    sources = [Source(read_reports(path, print))]
    asked = posed(sources, "measured", lengths=(LENGTH, LENGTH))
    scores = validated(asked, objective.extract(asked))
    manifest = json.loads((folder / "manifest.json").read_text())
    temperature, bias, least = (manifest.get(name, 1.0) for name in ("temperature", "bias", "threshold"))
    found = {name: [] for name in ("PR-QA F1", "Oracle-QA F1", "P@1", "reports answered", "reports refused")}
    for group in whole_reports(sources, QUESTIONS, PARAGRAPHS, None, LENGTH, "measured"):
        pairs = [(one, read) for one, read in zip(group, objective.extract(group), strict=True) if read is not None]
        first = max(pairs, key=margin)
        sure = sigmoid(margin(first) / temperature + bias) >= least
        right = [pair for pair in pairs if pair[0].answers]
        if not right:
            found["reports refused"].append(not sure)
            continue
        golds = [gold for one, _ in right for gold in one.golds]
        found["PR-QA F1"].append(f1(said(first), golds))
        found["Oracle-QA F1"].append(f1(said(max(right, key=margin)), golds))
        found["P@1"].append(bool(first[0].answers))
        found["reports answered"].append(sure)
    return scores | {name: sum(values) / len(values) for name, values in found.items() if values}


def margin(pair):
    """How much likelier what was read is than no answer."""
    return pair[1].margin


def said(pair):
    """What was read."""
    return pair[1].span.of(pair[0].text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for folder in ("reports", "bases", "out"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("names", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--weights-only", action="store_true")
    main(**vars(parser.parse_args()))
