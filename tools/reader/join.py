"""Fits how a reader and the ranker that ships are joined, and says what that gains on development data.

python tools/reader/join.py REPORTS READER

REPORTS is what prepare.py has made, READER the folder of a reader, which gets a ranked.json. The weights are fitted by
logistic regression to whether an answer is right, on half of the questions of each development file; the other half
says what is gained. So that no file outweighs another, each counts the same. All paragraphs decide how reader and
ranker are weighed; then the best of each question about clinical texts, which is what people see, decide how sure that
is. The threshold is the lowest at which nine in ten of those without an answer are refused in each file, both halves
together: a wrong answer does more harm than none.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from capr.evaluate.answers import calibration_error, f1
from capr.index.onnx import any_manifest
from capr.search.models import shipped
from capr.search.ranked_reader import Joint, logit
from capr.search.reader import OnnxReader
from capr.search.rerank import OnnxRanker
from capr.supervise.reports import read_reports
from capr.train.questions import Source, whole_reports

CLINICAL = ("samples", "covid", "clinical", "clauses")
FILES = (*CLINICAL, "squad")
LENGTH, PARAGRAPHS, QUESTIONS = 900, 12, 150
RIGHT = 0.5  # F1 from which on an answer is right
REFUSED = 0.9  # of the questions without an answer


def main(reports, folder):
    reader, ranker = OnnxReader(folder), OnnxRanker(shipped("ranker"))
    halves = {}
    for file in FILES:
        groups = read(reports / f"dev-{file}.json.gz", reader, ranker)
        random.Random(file).shuffle(groups)
        halves[file] = groups[::2], groups[1::2]
        print(f"{file}: {len(groups)} questions", flush=True)
    fit = {file: fit for file, (fit, _) in halves.items()}
    weights = fitted(
        [[((logit(one.confidence), one.score, 1.0), one.right) for group in groups for one in group]
         for groups in fit.values()]
    )  # fmt: skip
    joint = Joint(any_manifest(shipped("ranker"), "ranker").name, *weights, 0.5)
    slope, bias = fitted(
        [[((logit(sure), 1.0), right) for sure, right, _ in tops(fit[file], joint)] for file in CLINICAL]
    )
    joint = replace(joint, confidence=slope * weights[0], score=slope * weights[1], bias=slope * weights[2] + bias)
    least = refusing([tops([*fit, *held], joint) for file, (fit, held) in halves.items() if file in CLINICAL])
    joint = Joint(joint.ranker, *(round(float(v), 4) for v in (joint.confidence, joint.score, joint.bias, least)))
    joint.write(folder)
    print(joint)
    for file, (_, held) in halves.items():
        report(file, "reader", held, lambda one: one.confidence, reader.threshold)
        report(file, "ranker", held, lambda one: one.score, 0.0)
        report(file, "both", held, lambda one: joint.joined(one.confidence, one.score), joint.threshold)


class One:
    """A paragraph with what was read in it."""

    def __init__(self, posed, found, confidence, score, golds):
        said = found.span.of(posed.text)
        self.has, self.confidence, self.score = bool(posed.answers), confidence, score
        self.f1, self.right = f1(said, golds) if golds else 0.0, f1(said, posed.golds) >= RIGHT


def read(path, reader, ranker):
    groups = []
    for group in whole_reports([Source(read_reports(path))], QUESTIONS, PARAGRAPHS, None, LENGTH, "measured"):
        found = reader.extract([(one.question, one.text) for one in group])
        scores = ranker.scores(group[0].question, [one.text for one in group])
        scores = [score - max(scores) for score in scores]
        golds = [gold for one in group for gold in one.golds]
        groups.append([
            One(one, some[0], reader.confidence(some[0]), score, golds)
            for one, some, score in zip(group, found, scores, strict=True) if some
        ])  # fmt: skip
    return groups


def tops(groups, joint):
    """Of the best answer to each question: how sure, whether it is right, and whether the report answers at all."""
    found = []
    for group in groups:
        best = max(group, key=lambda one: joint.joined(one.confidence, one.score))
        found.append((joint.joined(best.confidence, best.score), best.right, any(one.has for one in group)))
    return found


def refusing(files):
    """The lowest threshold at which so many questions without an answer are refused in every file."""
    without = [np.array([sure for sure, _, has in found if not has]) for found in files]
    without = [some for some in without if len(some)]
    candidates = np.unique(np.concatenate(without)) + 1e-6
    return next(least for least in candidates if min((some < least).mean() for some in without) >= REFUSED)


def fitted(files, steps=50, penalty=1e-3):
    """Weights of logistic regression by Newton's method, each file with the same weight.

    A file has features, of which the last is 1 for the bias, and whether each is right.
    """
    x = np.array([features for rows in files for features, _ in rows])
    y = np.array([right for rows in files for _, right in rows], float)
    weight = np.concatenate([np.full(len(rows), 1 / len(rows) / len(files)) for rows in files])
    found = np.eye(x.shape[1])[0]
    for _ in range(steps):
        likely = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (weight * (likely - y)) + penalty * found
        bend = x.T @ (x * (weight * likely * (1 - likely))[:, None]) + penalty * np.eye(x.shape[1])
        found = found - np.linalg.solve(bend, slope)
    return found


def report(file, name, groups, sure, least):
    places, f1s, oracle, answered, refused = [], [], [], [], []
    for group in groups:
        order = sorted(group, key=sure, reverse=True)
        if not any(one.has for one in group):
            refused.append(sure(order[0]) < least)
            continue
        places.append(1 + next(place for place, one in enumerate(order) if one.has))
        f1s.append(order[0].f1)
        oracle.append(next(one.f1 for one in order if one.has))
        answered.append(sure(order[0]) >= least)
    measures = {f"P@{k}": np.mean([place <= k for place in places]) for k in (1, 2, 3)}
    measures |= {"PR-QA F1": np.mean(f1s), "Oracle-QA F1": np.mean(oracle), "answered": np.mean(answered)}
    if refused:
        measures["refused"] = np.mean(refused)
    if name != "ranker":
        best = [max(group, key=sure) for group in groups]
        measures["ECE"] = calibration_error([(sure(one), one.right) for one in best])
    print(
        f"{file:9}{name:8}", {measure: round(100 * float(value), 1) for measure, value in measures.items()}, flush=True
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
