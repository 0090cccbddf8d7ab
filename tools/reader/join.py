"""Fit the weights that join a reader with the built-in ranker, and measure the gain on development data.

python tools/reader/join.py REPORTS READER

REPORTS is the output of prepare.py. READER is the folder of a reader; the script writes a ranked.json into it. Logistic
regression fits the weights to whether an answer is right, on half of the questions of each development file; the other
half shows the gain. All files have the same weight. All paragraphs serve to fit the weights of reader and ranker. The
best paragraph of each question about clinical texts, which users see, then serves to fit the confidence. The threshold
is the lowest one at which reader and ranker refuse nine in ten unanswerable questions of each file, both halves
together, because a wrong answer does more harm than no answer.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from capr.measures.answers import calibration_error, f1
from capr.runtime.kinds import read_manifest
from capr.runtime.ranked_reader import Joint, logit
from capr.runtime.ranker import OnnxRanker
from capr.runtime.reader import OnnxReader
from capr.runtime.shipped import shipped
from capr.supervise.paragraph_questions import WeightedReports, whole_reports
from capr.supervise.reports import read_reports

CLINICAL = ("samples", "covid", "clinical", "clauses")
FILES = (*CLINICAL, "squad")
LENGTH, PARAGRAPHS, QUESTIONS = 900, 12, 150
MIN_RIGHT_F1 = 0.5  # an answer with this F1 or more is right
MIN_REFUSED = 0.9  # the minimum share of refused questions among those without an answer


def main(reports, folder):
    reader, ranker = OnnxReader(folder), OnnxRanker(shipped("ranker"))
    halves = {}
    for file in FILES:
        groups = read_groups(reports / f"dev-{file}.json.gz", reader, ranker)
        random.Random(file).shuffle(groups)
        halves[file] = groups[::2], groups[1::2]
        print(f"{file}: {len(groups)} questions", flush=True)
    fit = {file: fit for file, (fit, _) in halves.items()}
    weights = fit_weights(
        [
            [
                ((logit(paragraph.confidence), paragraph.score, 1.0), paragraph.is_right)
                for group in groups
                for paragraph in group
            ]
            for groups in fit.values()
        ]
    )
    joint = Joint(read_manifest(shipped("ranker"), "ranker").name, *weights, 0.5)
    slope, bias = fit_weights(
        [
            [((logit(confidence), 1.0), is_right) for confidence, is_right, _ in best_answers(fit[file], joint)]
            for file in CLINICAL
        ]
    )
    joint = replace(joint, confidence=slope * weights[0], score=slope * weights[1], bias=slope * weights[2] + bias)
    threshold = refusal_threshold(
        [best_answers([*fit, *held_out], joint) for file, (fit, held_out) in halves.items() if file in CLINICAL]
    )
    joint = Joint(
        joint.ranker, *(round(float(value), 4) for value in (joint.confidence, joint.score, joint.bias, threshold))
    )
    joint.write(folder)
    print(joint)
    for file, (_, held_out) in halves.items():
        print_measures(file, "reader", held_out, lambda paragraph: paragraph.confidence, reader.threshold)
        print_measures(file, "ranker", held_out, lambda paragraph: paragraph.score, 0.0)
        print_measures(
            file,
            "both",
            held_out,
            lambda paragraph: joint.joined(paragraph.confidence, paragraph.score),
            joint.threshold,
        )


class ReadParagraph:
    """A paragraph with the reader's answer, its scores, and whether it is right."""

    def __init__(self, example, answer, confidence, score, golds):
        text = answer.span.of(example.text)
        self.has_answer, self.confidence, self.score = bool(example.answers), confidence, score
        self.f1, self.is_right = f1(text, golds) if golds else 0.0, f1(text, example.gold_answers) >= MIN_RIGHT_F1


def read_groups(path, reader, ranker):
    """Read the paragraphs of each question, with the reader's answers and the ranker's scores."""
    groups = []
    for group in whole_reports([WeightedReports(read_reports(path))], QUESTIONS, PARAGRAPHS, None, LENGTH, "measured"):
        answers = reader.extract([(example.question, example.text) for example in group])
        scores = ranker.scores(group[0].question, [example.text for example in group])
        scores = [score - max(scores) for score in scores]
        golds = [gold for example in group for gold in example.gold_answers]
        groups.append(
            [
                ReadParagraph(example, best[0], reader.confidence(best[0]), score, golds)
                for example, best, score in zip(group, answers, scores, strict=True)
                if best
            ]
        )
    return groups


def best_answers(groups, joint):
    """Return for the best answer to each question: confidence, whether it is right, whether the report answers."""
    best_of_groups = []
    for group in groups:
        best = max(group, key=lambda paragraph: joint.joined(paragraph.confidence, paragraph.score))
        best_of_groups.append(
            (joint.joined(best.confidence, best.score), best.is_right, any(paragraph.has_answer for paragraph in group))
        )
    return best_of_groups


def refusal_threshold(files):
    """Return the lowest threshold at which enough unanswerable questions of every file are refused."""
    unanswerable = [
        np.array([confidence for confidence, _, has_answer in answers if not has_answer]) for answers in files
    ]
    unanswerable = [confidences for confidences in unanswerable if len(confidences)]
    candidates = np.unique(np.concatenate(unanswerable)) + 1e-6
    return next(
        threshold
        for threshold in candidates
        if min((confidences < threshold).mean() for confidences in unanswerable) >= MIN_REFUSED
    )


def fit_weights(files, steps=50, penalty=1e-3):
    """Fit weights of logistic regression by Newton's method, each file with the same weight.

    A row of a file has features, the last of which is 1 for the bias, and whether the answer is right.
    """
    x = np.array([features for rows in files for features, _ in rows])
    y = np.array([right for rows in files for _, right in rows], float)
    row_weights = np.concatenate([np.full(len(rows), 1 / len(rows) / len(files)) for rows in files])
    weights = np.eye(x.shape[1])[0]
    for _ in range(steps):
        probability = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (row_weights * (probability - y)) + penalty * weights
        hessian = x.T @ (x * (row_weights * probability * (1 - probability))[:, None]) + penalty * np.eye(x.shape[1])
        weights = weights - np.linalg.solve(hessian, gradient)
    return weights


def print_measures(file, name, groups, score, threshold):
    """Print the measures of the answers that a score puts first."""
    ranks, f1s, oracle, answered_flags, refused_flags = [], [], [], [], []
    for group in groups:
        order = sorted(group, key=score, reverse=True)
        if not any(paragraph.has_answer for paragraph in group):
            refused_flags.append(score(order[0]) < threshold)
            continue
        ranks.append(1 + next(rank for rank, paragraph in enumerate(order) if paragraph.has_answer))
        f1s.append(order[0].f1)
        oracle.append(next(paragraph.f1 for paragraph in order if paragraph.has_answer))
        answered_flags.append(score(order[0]) >= threshold)
    measures = {f"P@{k}": np.mean([rank <= k for rank in ranks]) for k in (1, 2, 3)}
    measures |= {"PR-QA F1": np.mean(f1s), "Oracle-QA F1": np.mean(oracle), "answered": np.mean(answered_flags)}
    if refused_flags:
        measures["refused"] = np.mean(refused_flags)
    if name != "ranker":
        best = [max(group, key=score) for group in groups]
        measures["ECE"] = calibration_error([(score(paragraph), paragraph.is_right) for paragraph in best])
    print(
        f"{file:9}{name:8}", {measure: round(100 * float(value), 1) for measure, value in measures.items()}, flush=True
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
