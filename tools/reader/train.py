"""Train readers on one GPU, and measure each on files outside of its training data.

python tools/reader/train.py REPORTS BASES OUT MODEL… [--weights-only]

REPORTS is the output of prepare.py: NAME.json.gz to train on, and dev-NAME.json.gz to measure. BASES is a folder with
the Hugging Face checkpoint ms-marco-MiniLM-L-12-v2. Each model goes to OUT/MODEL, its measures to
OUT/MODEL/measured.json. Models that another model starts from, learns from or averages come first. For the reader that
ships, train warm, reader-1, reader-2, reader-3, readers, refined-1, refined-2, refined-3, reader; models that differ
only in a number can train side by side. The script skips finished models, and resumes an interrupted run from its last
checkpoint. With --weights-only it exports and measures nothing. Besides capr itself it needs torch, transformers, onnx,
onnxruntime, tokenizers and numpy.
"""

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors.torch import load_file

from capr.measures.answers import f1
from capr.models.bases import KEPT
from capr.models.family import Schedule
from capr.models.reader import ReaderFamily
from capr.runtime.reader import sigmoid
from capr.supervise.paragraph_questions import WeightedReports, draw_questions, whole_reports
from capr.supervise.reports import read_reports
from capr.train.finish import CardFacts, finish
from capr.train.reading import TrainedReader, train, validation_scores

MINILM = "ms-marco-MiniLM-L-12-v2"
LENGTH = 900  # the length of a paragraph in measurements, in characters
QUESTIONS, PARAGRAPHS = 500, 40  # the maximum numbers of questions of a file and paragraphs of a report
CALIBRATION_FILES = ("squad", "covid", "clinical", "clauses", "visits")
WARM_WEIGHTS = {"texts": 1.0}
# The name of a file -> how many times an epoch draws each of its questions.
WEIGHTS = {"squad": 1.0, "articles": 1.0, "clinical": 0.3, "visits": 1.0}


@dataclass(frozen=True)
class ReaderPlan:
    """The family, schedule and data of a model."""

    family: ReaderFamily
    schedule: Schedule
    ship: bool = True
    sources: dict[str, float] = field(default_factory=lambda: WEIGHTS)


@dataclass(frozen=True)
class MeanPlan:
    """The mean of the weights of models that started from the same weights.

    Reference: Wortsman et al., Model soups: averaging weights of multiple fine-tuned models, 2022.
    """

    members: tuple[str, ...]
    ship: bool = False


SEEDS = (1, 2, 3)
SHARES = (0.3, 0.5, 0.7, 1.0)  # of the score of a paragraph, beside the margin of its answer
SHORT = Schedule(epochs=2, batch=96, learning_rate=5e-5, patience=0)
LONG = Schedule(epochs=3, batch=96, learning_rate=1.1e-4, patience=0, validations=2)
STUDENT = Schedule(epochs=5, batch=96, learning_rate=1.6e-4, patience=0)
FROM_BASE, FROM_WARM = ReaderFamily(base=MINILM, licence="CC BY-SA"), ReaderFamily(base="warm", licence="CC BY-SA")
JOINT = replace(FROM_BASE, base="reader-0.1", hard_negative_share=0.5, negative_paragraphs=5, validation=0.02)
JOINT_SCHEDULE = Schedule(epochs=2, batch=32, learning_rate=5e-5, patience=0)
NEW = WEIGHTS | {"written": 2.0, "squad1": 0.25}
REFINED = replace(FROM_WARM, base="readers", hard_negative_share=0.5)
MODELS = {
    "warm": ReaderPlan(FROM_BASE, replace(LONG, epochs=1), ship=False, sources=WARM_WEIGHTS),
    **{
        f"joint-{seed}": ReaderPlan(JOINT, replace(JOINT_SCHEDULE, seed=seed), ship=seed == 1, sources=NEW)
        for seed in SEEDS
    },
    "joint": MeanPlan(tuple(f"joint-{seed}" for seed in SEEDS), ship=True),
    **{f"reader-{seed}": ReaderPlan(FROM_WARM, replace(LONG, seed=seed), ship=False) for seed in SEEDS},
    "readers": MeanPlan(tuple(f"reader-{seed}" for seed in SEEDS)),
    **{f"refined-{seed}": ReaderPlan(REFINED, replace(SHORT, seed=seed), ship=False) for seed in SEEDS},
    "reader": MeanPlan(tuple(f"refined-{seed}" for seed in SEEDS), ship=True),
    "cold": ReaderPlan(FROM_BASE, LONG, ship=False),
    "alike": ReaderPlan(replace(FROM_WARM, hard_negative_share=0.5), LONG, ship=False),
    "much": ReaderPlan(FROM_WARM, LONG, ship=False, sources=WEIGHTS | {"clinical": 1.0}),
    "unvisited": ReaderPlan(FROM_WARM, LONG, ship=False, sources=WEIGHTS | {"visits": 0.0}),
    "reader6": ReaderPlan(replace(REFINED, base="reader", layers=6, teacher="reader"), STUDENT),
}


def main(reports, bases, out, names, weights_only):
    start = time.monotonic()

    def log(*words):
        print(f"[{time.monotonic() - start:4.0f} s]", *words, flush=True)

    for name in names:
        model = MODELS[name]
        if (out / name / "training.json").is_file():
            log(name, "is finished")
        elif isinstance(model, MeanPlan):
            log(name, average(model, reports, out, name, model.ship and not weights_only))
        else:
            family = with_paths(replace(model.family, name=name), bases, out)
            sources = [
                WeightedReports(read_reports(reports / f"{file}.json.gz", print), weight, name=file)
                for file, weight in model.sources.items()
                if weight
            ]
            log(
                name,
                {source.name: f"{len(source.reports):,} reports, {source.questions:,} questions" for source in sources},
            )

            def report_progress(report, name=name):
                if report.scores or report.step % 100 == 0:
                    log(name, f"{report.step:,} of {report.steps:,}, loss {report.loss:.3f}", report.scores or "")

            onnx = model.ship and not weights_only
            log(name, train(sources, family, model.schedule, out / name, True, report_progress, onnx=onnx))
        if weights_only or name == "warm":
            continue  # the training data of warm have no questions
        files = sorted(reports.glob("dev-*.json.gz"))
        measures = {path.name.partition(".")[0]: measure(out / name, path) for path in files}
        (out / name / "measured.json").write_text(json.dumps(measures, indent=1) + "\n")
        for file, scores in measures.items():
            log(name, file, {measure: round(100 * value, 2) for measure, value in scores.items()})


def average(model, reports, out, name, onnx):
    """Make the mean of models, calibrated on the development files, which are in the training data of no model."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    states = [load_file(out / member / KEPT / "model.safetensors") for member in model.members]
    mean = {key: torch.stack([state[key].float() for state in states]).mean(0) for key in states[0]}
    objective = replace(FROM_WARM, base=str(out / model.members[0]), name=name).objective(Schedule().device)
    objective.model.answerer.load_state_dict(mean)
    length = objective.family.length
    sources = [
        WeightedReports(read_reports(reports / f"dev-{file}.json.gz", print), name=file)
        for file in CALIBRATION_FILES
        if onnx
    ]
    examples = draw_questions(sources, "mean", lengths=(length, length))
    training = json.loads((out / model.members[0] / "training.json").read_text())
    settings = training["settings"] | {"mean of": ", ".join(model.members)}
    facts = CardFacts(name, "reader", training["data"], training["licence"], settings, {})
    return finish(TrainedReader(objective, sources, examples, None, seed=1), folder, facts, onnx)


def with_paths(family, bases, out):
    """Return the settings with the paths of the base and the teacher."""
    base = (bases if (bases / family.base).is_dir() else out) / family.base
    return replace(family, base=str(base), teacher=str(out / family.teacher) if family.teacher else "")


def measure(folder, path):
    """Measure F1 and EM as SQuAD v2 does, answered and refused questions, and the best answer in whole reports."""
    objective = ReaderFamily(base=str(folder)).objective(Schedule().device)
    objective.model.to(objective.tokenizer.device).eval()
    sources = [WeightedReports(read_reports(path, print))]
    examples = draw_questions(sources, "measured", lengths=(LENGTH, LENGTH))
    scores = validation_scores(examples, objective.extract(examples))
    manifest = json.loads((folder / "manifest.json").read_text())
    temperature, bias, threshold = (manifest.get(name, 1.0) for name in ("temperature", "bias", "threshold"))
    values_by_measure = {
        name: [] for name in ("PR-QA F1", "Oracle-QA F1", "P@1", "reports answered", "reports refused")
    }
    for share in SHARES:
        values_by_measure |= {f"P@1 passage {share}": [], f"PR-QA F1 passage {share}": []}
    for group in whole_reports(sources, QUESTIONS, PARAGRAPHS, None, LENGTH, "measured"):
        pairs = [
            (example, answer)
            for example, answer in zip(group, objective.extract(group), strict=True)
            if answer is not None
        ]
        best = max(pairs, key=margin)
        is_sure = sigmoid(margin(best) / temperature + bias) >= threshold
        answering = [pair for pair in pairs if pair[0].answers]
        if not answering:
            values_by_measure["reports refused"].append(not is_sure)
            continue
        golds = [gold for example, _ in answering for gold in example.gold_answers]
        values_by_measure["PR-QA F1"].append(f1(answer_text(best), golds))
        values_by_measure["Oracle-QA F1"].append(f1(answer_text(max(answering, key=margin)), golds))
        values_by_measure["P@1"].append(bool(best[0].answers))
        values_by_measure["reports answered"].append(is_sure)
        for share in SHARES:
            first = max(pairs, key=lambda pair: (1 - share) * pair[1].margin + share * pair[1].paragraph)
            values_by_measure[f"P@1 passage {share}"].append(bool(first[0].answers))
            values_by_measure[f"PR-QA F1 passage {share}"].append(f1(answer_text(first), golds))
    return scores | {name: sum(values) / len(values) for name, values in values_by_measure.items() if values}


def margin(pair):
    """Return the log-probability of the answer minus that of no answer."""
    return pair[1].margin


def answer_text(pair):
    """Return the text of the answer."""
    return pair[1].span.of(pair[0].text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for folder in ("reports", "bases", "out"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("names", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--weights-only", action="store_true")
    main(**vars(parser.parse_args()))
