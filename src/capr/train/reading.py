"""Trains a reader from reports with questions to a finished folder."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from capr.documents.quantity import quantity
from capr.measures.answers import calibration_error, exact_match, f1
from capr.models.family import Schedule
from capr.models.reader import ReaderBatch, ReaderFamily, ReaderObjective
from capr.runtime.extraction import ExtractedAnswer
from capr.runtime.reader import OnnxReader, sigmoid
from capr.supervise.paragraph_questions import (
    Cut,
    ParagraphQuestion,
    WeightedReports,
    draw_question_groups,
    draw_questions,
    split,
    whole_reports,
)
from capr.supervise.reports import ReportQuestion
from capr.text.digest import digest_records
from capr.train import loop
from capr.train.calibration import fit_calibration, threshold
from capr.train.finish import CardFacts, TrainedObjective, begin, check_share, finish, too_few
from capr.train.loop import Progress, TrainingTask, no_progress, shard
from capr.train.parallel import rank

FEWEST = 8  # questions to train on
VALIDATED = 1000  # questions per validation, each with a paragraph
CALIBRATED = 400  # questions for the calibration of the exported reader, each with a whole report
PARAGRAPHS = 12  # maximum number of paragraphs of a report for the calibration
CHECKED = 100  # questions for the check of the exported network
RIGHT = 0.5  # minimum F1 of a right answer with a gold answer
ALIKE = 25  # batches whose paragraphs are sorted by length together
WORKERS = 4  # processes that tokenize texts, because this takes longer than a training step on a GPU


def train(
    sources: Sequence[WeightedReports],
    family: ReaderFamily,
    schedule: Schedule,
    out: Path,
    resume: bool = False,
    progress: Progress = no_progress,
    cut: Cut | None = None,
    onnx: bool = True,
) -> dict[str, float]:
    """Train, validate, export, calibrate and describe a reader, and return its scores on the validation split.

    Args:
        sources: reports with questions.
        family: the family with its settings.
        schedule: the length and the learning rate of the training. A batch has this many questions, each with a
            paragraph.
        out: the output folder.
        resume: whether to continue from the checkpoint, if there is one with the same settings.
        progress: a function that is called after each step.
        cut: a function that cuts a report into paragraphs. Default: uniform paragraphs of many lengths.
        onnx: whether to export and calibrate the reader. A base for further training, or a teacher, needs no export.

    Raises:
        CaprError: there is too little to learn from, the base cannot be used, or training went wrong.
    """
    train_sources, held_sources = split(sources, family.validation, schedule.seed)
    counts = [sum(source.questions for source in part) for part in (train_sources, held_sources)]
    validation_questions = draw_questions(held_sources, f"{schedule.seed} held", cut, (family.length, family.length))[
        :VALIDATED
    ]
    if counts[0] < FEWEST or not any(question.answers for question in validation_questions):
        fix = "name more reports with questions and answers, or a larger --validation"
        raise too_few(quantity(counts[0], "question"), f"{counts[1]}", fix)
    torch.manual_seed(schedule.seed)
    objective = family.objective(schedule.device, schedule.limit)
    task = ReadingTask(objective, train_sources, cut, validation_questions, schedule)
    begin(out, resume)
    scores = loop.fit(task, task.schedule, out, resume, progress)
    if rank():
        return scores  # the first process writes the model
    data = {
        "reports": sum(len(source.reports) for source in sources),
        "questions": sum(counts),
        "validation questions": counts[1],
        **{
            source.name: f"{source.questions:,} questions, weight {source.weight:g}"
            for source in sources
            if source.name
        },
    }
    settings = {**family.settings(), **asdict(task.schedule)}
    facts = CardFacts(family.name or out.name, "reader", data, family.licence, settings, scores)
    return finish(TrainedReader(objective, held_sources, validation_questions, cut, schedule.seed), out, facts, onnx)


def group_by_length(questions: Sequence[list[ParagraphQuestion]], batch: int) -> list[list[ParagraphQuestion]]:
    """Return the questions in batches whose paragraphs have similar lengths, and so need little padding.

    The order of the batches is random.
    """

    def length(pairs: Sequence[ParagraphQuestion]) -> int:
        return max(pair.paragraph.end - pair.paragraph.begin for pair in pairs)

    batches = []
    for start in range(0, len(questions), batch * ALIKE):
        nearby = questions[start : start + batch * ALIKE]
        nearby = sorted(nearby, key=length)
        batches += [nearby[first : first + batch] for first in range(0, len(nearby), batch)]
    short = batches.pop() if batches and len(batches[-1]) < batch else []
    random.Random(len(batches)).shuffle(batches)
    return [question for group in (*batches, short) for question in group]


class ReadingTask(TrainingTask):
    """The task of learning to answer. An epoch has each question with answering paragraphs and as many others."""

    stage = "reader"
    smaller = " or a shorter --length"

    def __init__(
        self,
        objective: ReaderObjective,
        sources: Sequence[WeightedReports],
        cut: Cut | None,
        validation_questions: Sequence[ParagraphQuestion],
        schedule: Schedule,
    ) -> None:
        self.objective, self.validation_questions, self.model = objective, validation_questions, objective.model
        self.sources = sources
        self.questions = sum(source.questions for source in sources)
        epochs = [self._epoch(sources, cut, f"{schedule.seed} {epoch}") for epoch in range(schedule.epochs)]
        self.schedule = replace(schedule, batch=max(1, min(schedule.batch, min(map(len, epochs)))))
        self.order = [question for epoch in epochs for question in group_by_length(epoch, self.schedule.batch)]
        self.epoch_steps = max(1, len(self.order) // schedule.epochs // self.schedule.batch)
        self.workers = WORKERS if schedule.device == "cuda" else 0

    def _epoch(self, sources: Sequence[WeightedReports], cut: Cut | None, seed: str) -> list[list[ParagraphQuestion]]:
        """Draw the examples of an epoch: each pair by itself, or all pairs of a question if paragraphs are scored."""
        family = self.objective.family
        options = (cut, family.lengths, family.unanswerable, family.hard_negative_share)
        if not family.negative_paragraphs:
            return [[pair] for pair in draw_questions(sources, seed, *options)]
        groups = draw_question_groups(sources, seed, *options, family.negative_paragraphs)
        random.Random(seed).shuffle(groups)
        return groups

    def batch(self, step: int) -> ReaderBatch:
        size = self.schedule.batch
        questions = shard(self.order[step * size : (step + 1) * size])
        return self.objective.batch(questions, random.Random(f"{self.schedule.seed} {step} {rank()}"))

    def loss(self, batch: ReaderBatch) -> Tensor:
        return self.objective.loss(batch)

    def validate(self) -> dict[str, float] | None:
        return validation_scores(self.validation_questions, self.objective.extract(self.validation_questions))

    def settings(self) -> dict[str, Any]:
        return {"questions": self.questions, "model": repr(self.model)}

    def data_digest(self) -> str:
        return digest_records(
            [source.weight, report.document.id, report.document.text, *map(_as_record, report.questions)]
            for source in self.sources
            for report in source.reports
        )


def _as_record(question: ReportQuestion) -> list[Any]:
    return [question.id, question.text, [[*span] for span in question.answers]]


class TrainedReader(TrainedObjective):
    """The trained reader, with questions for checking its export and calibrating it."""

    objective: ReaderObjective

    def __init__(
        self,
        objective: ReaderObjective,
        held_sources: Sequence[WeightedReports],
        validation_questions: Sequence[ParagraphQuestion],
        cut: Cut | None,
        seed: int,
    ) -> None:
        super().__init__(objective)
        self.validation_questions = validation_questions
        self.groups = partial(
            whole_reports, held_sources, CALIBRATED, PARAGRAPHS, cut, objective.family.length, f"{seed} calibration"
        )
        self.confidence: dict[str, float] = {}  # temperature, bias and threshold

    def manifest(self) -> Mapping[str, Any]:
        return {**super().manifest(), **self.confidence}

    def check(self, folder: Path) -> dict[str, float]:
        checked = check(self.objective, folder, self.validation_questions[:CHECKED])
        self.confidence, scores = calibrate(partial(extract_answers, OnnxReader(folder)), self.groups())
        return checked | scores


def validation_scores(
    questions: Sequence[ParagraphQuestion], answers: Sequence[ExtractedAnswer | None]
) -> dict[str, float]:
    """Return SQuAD v2's F1 and EM, and the shares of answered and of refused questions.

    The reader answers if its margin is above 0. If it does not answer, F1 and EM are 1 if the paragraph has no answer,
    else 0.
    """
    measures: list[tuple[float, float]] = []
    answered: list[bool] = []
    refused: list[bool] = []
    for question, answer in zip(questions, answers, strict=True):
        text = answer.span.of(question.text) if answer is not None and answer.margin > 0 else None
        if question.answers:
            answered.append(text is not None)
            gold_answers = question.gold_answers
            measures.append((0.0, 0.0) if text is None else (f1(text, gold_answers), exact_match(text, gold_answers)))
        else:
            refused.append(text is None)
            measures.append((float(text is None),) * 2)
    return {
        "F1": mean(f1 for f1, _ in measures),
        "EM": mean(exact for _, exact in measures),
        "answered": float(mean(answered)) if answered else 1.0,
        "refused": float(mean(refused)) if refused else 1.0,
    }


def check(objective: ReaderObjective, out: Path, questions: Sequence[ParagraphQuestion]) -> dict[str, float]:
    """Return how often the exported networks find the same answer as torch, in 32 and in 8 bits, and their F1.

    Raises:
        CaprError: in 32 bits they do not agree, so the export is wrong.
    """
    objective.model.cpu().float().eval()
    objective.tokenizer.device = "cpu"
    expected = objective.extract(questions)
    scores = {}
    for bits, file in (("32 bits", "model.fp32.onnx"), ("8 bits", "model.onnx")):
        answers = extract_answers(OnnxReader(out, file=file), questions)
        same = [a is b or (a and b and a.span == b.span) for a, b in zip(expected, answers, strict=True)]
        scores[f"as torch, {bits}"] = float(mean(map(bool, same)))
        scores[f"F1, {bits}"] = validation_scores(questions, answers)["F1"]
    check_share(scores["as torch, 32 bits"], "reader gives another answer to {} of the questions", out)
    return scores


def extract_answers(reader: OnnxReader, questions: Iterable[ParagraphQuestion]) -> list[ExtractedAnswer | None]:
    """Return the best answer of an exported reader to each question, or None."""
    answers = reader.extract([(question.question, question.text) for question in questions])
    return [ranked[0] if ranked else None for ranked in answers]


def calibrate(
    extract: Callable[[Sequence[ParagraphQuestion]], list[ExtractedAnswer | None]],
    groups: Sequence[Sequence[ParagraphQuestion]],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return temperature, bias and threshold for the manifest, and the scores of the calibration.

    An answer is right if its F1 with the gold answer of the paragraph is 0.5 or more. The threshold best separates
    answerable questions from unanswerable ones (`capr.train.calibration.threshold`). An answerable question without its
    answering paragraphs also counts as unanswerable.

    Args:
        extract: a function that returns the answers of the reader.
        groups: questions, each with the paragraphs of its report.
    """
    margins: list[float] = []
    right: list[bool] = []
    tops: dict[bool, list[float]] = {True: [], False: []}
    for group in groups:
        best: dict[bool, float] = {}
        for question, answer in zip(group, extract(group), strict=True):
            if answer is None:
                continue
            margins.append(answer.margin)
            right.append(f1(answer.span.of(question.text), question.gold_answers) >= RIGHT)
            answerable = bool(question.answers)
            best[answerable] = max(best.get(answerable, answer.margin), answer.margin)
        if True in best:
            tops[True].append(max(best.values()))
        if False in best:
            tops[False].append(best[False])
    temperature, bias = fit_calibration(margins, right)

    def confidences(margins: Iterable[float]) -> list[float]:
        return [sigmoid(margin / temperature + bias) for margin in margins]

    least, answered, refused = threshold(confidences(tops[True]), confidences(tops[False]))
    manifest = {"temperature": round(temperature, 4), "bias": round(bias, 4), "threshold": round(least, 4)}
    return manifest, {
        "calibration error": calibration_error(list(zip(confidences(margins), right, strict=True))),
        "threshold": round(least, 4),
        "reports answered": answered,
        "reports refused": refused,
    }
