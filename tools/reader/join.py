"""Fits how a reader and the ranker that ships are joined, and says what that gains on development data.

python tools/reader/join.py REPORTS READER

REPORTS is what prepare.py has made, READER the folder of a reader, which gets a ranked.json. The weights are fitted by
logistic regression to whether an answer is right, on half of the questions of each development file; the other half
says what is gained. So that no file outweighs another, each counts the same.
"""

import random
import sys
from pathlib import Path

import numpy as np

from capr.evaluate.answers import calibration_error, f1
from capr.index.onnx import any_manifest
from capr.search.models import shipped
from capr.search.ranked_reader import Joint, logit
from capr.search.reader import OnnxReader
from capr.search.rerank import OnnxRanker
from capr.supervise.reports import read_reports
from capr.train.calibration import threshold
from capr.train.questions import Source, whole_reports

FILES = ("samples", "covid", "squad", "clinical", "clauses")
LENGTH, PARAGRAPHS, QUESTIONS = 900, 12, 150
RIGHT = 0.5  # F1 from which on an answer is right


def main(reports, folder):
    reader, ranker = OnnxReader(folder), OnnxRanker(shipped("ranker"))
    halves = {}
    for file in FILES:
        groups = read(reports / f"dev-{file}.json.gz", reader, ranker)
        random.Random(file).shuffle(groups)
        halves[file] = groups[::2], groups[1::2]
        print(f"{file}: {len(groups)} questions", flush=True)
    weights = fitted([fit for fit, _ in halves.values()])
    name = any_manifest(shipped("ranker"), "ranker").name
    tops = {True: [], False: []}
    joint = Joint(name, *weights, 0.5)
    for fit, _ in halves.values():
        for group in fit:
            best = max(joint.joined(one.confidence, one.score) for one in group)
            tops[any(one.has for one in group)].append(best)
    joint = Joint(name, *(round(float(value), 4) for value in (*weights, threshold(tops[True], tops[False])[0])))
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


def fitted(files, steps=50, penalty=1e-3):
    """Weights of the logit of the confidence, of the score, and a bias, by Newton's method."""
    rows, right, counts = [], [], []
    for groups in files:
        ones = [one for group in groups for one in group]
        rows += [(logit(one.confidence), one.score, 1.0) for one in ones]
        right += [one.right for one in ones]
        counts += [1 / len(ones)] * len(ones)
    x, y, weight = np.array(rows), np.array(right, float), np.array(counts) / len(files)
    found = np.array([1.0, 0.0, 0.0])
    for _ in range(steps):
        likely = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (weight * (likely - y)) + penalty * found
        bend = x.T @ (x * (weight * likely * (1 - likely))[:, None]) + penalty * np.eye(3)
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
        measures["ECE"] = calibration_error([(sure(one), one.right) for group in groups for one in group])
    print(
        f"{file:9}{name:8}", {measure: round(100 * float(value), 1) for measure, value in measures.items()}, flush=True
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
