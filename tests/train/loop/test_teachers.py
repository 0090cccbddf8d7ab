"""Teachers: smaller networks come near the scores of a cross-encoder."""

import re
from dataclasses import replace

import pytest
import torch
from small_families import SCHEDULE, family, same, weights

from capr.documents import CaprError
from capr.models.cross import load_teacher
from capr.models.losses import distillation
from capr.train.finish import CardFacts, finish
from capr.train.ranking import TrainedRanker, fit


@pytest.fixture(scope="module")
def teacher(bert, parts, tmp_path_factory):
    """An untrained cross-encoder in the folder that `capr train cross` writes."""
    folder = tmp_path_factory.mktemp("teacher")
    torch.manual_seed(5)
    objective = family("cross", bert).objective(parts[0], "cpu")
    with torch.no_grad():
        objective.model.classifier.classifier.weight *= 20
    finish(
        TrainedRanker(objective, parts[1], parts[2]),
        folder,
        CardFacts("teacher", "cross-encoder", {}, "", {}, {}),
        onnx=False,
    )
    return folder


def apart(student, teacher, lists, held_out) -> float:
    student.model.eval()
    ours, theirs = (torch.tensor(ranker.score_lists(held_out, lists, "text")) for ranker in (student, teacher))
    return distillation(ours, theirs).item()


def test_a_smaller_cross_encoder_comes_near_its_teacher(build, parts, teacher):
    _, held_out, lists = parts
    student = build("cross", negatives=5, layers=1, teachers=(str(teacher),), label_weight=0.0)
    assert student.model.classifier.config.num_hidden_layers == len(student.model.classifier.bert.encoder.layer) == 1
    judge = load_teacher(str(teacher), "cpu")
    assert not judge.model.training
    before, teacher_weights = apart(student, judge, lists, held_out), weights(judge)
    fit(student, replace(SCHEDULE, epochs=10, learning_rate=2e-3), None)
    assert apart(student, judge, lists, held_out) < 0.5 * before
    assert same(weights(student.teachers[0]), teacher_weights)


def test_a_bi_encoder_comes_near_its_teacher(build, parts, teacher):
    training, _, _ = parts
    lists = list(training.lists(8, 30, 1))
    judge = load_teacher(str(teacher), "cpu")
    near = {}
    for name, taught_by in (("distillation", str(teacher)), ("alone", "")):
        student = build(teacher=taught_by, temperature=0.1)
        fit(student, replace(SCHEDULE, epochs=10, learning_rate=2e-3), None)
        near[name] = apart(student, judge, lists, training)
    assert near["distillation"] < 0.7 * near["alone"]


def test_a_folder_without_a_teacher_is_named(build, bert):
    with pytest.raises(CaprError, match=rf"{re.escape(str(bert))} is not a teacher: it has no torch. Fix: "):
        build(teacher=str(bert))
