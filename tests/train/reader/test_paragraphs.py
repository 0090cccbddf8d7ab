"""Readers that score paragraphs: training data, loss, export."""

import numpy as np
import pytest
import torch
from reports import REPORTS, SOURCES, family_of

from capr.models.bases import load_answerer
from capr.models.family import Schedule
from capr.models.reader import paragraph_loss
from capr.runtime.reader import OnnxReader
from capr.supervise.paragraph_questions import draw_question_groups
from capr.train.reading import train

SCHEDULE = Schedule(epochs=12, batch=8, learning_rate=3e-3, patience=0, device="cpu")


@pytest.fixture(scope="module")
def trained(bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("paragraphs")
    scores = train(SOURCES, family_of(bert, negative_paragraphs=3, lengths=(30, 60)), SCHEDULE, folder)
    return folder, scores


def test_a_question_comes_with_its_paragraphs_and_some_others():
    groups = draw_question_groups(SOURCES, "seed", lengths=(20, 30), negative_paragraphs=2)
    assert len(groups) == sum(len(report.questions) for report in REPORTS)
    for group in groups:
        assert len({(pair.question, pair.document.id) for pair in group}) == 1
        assert sum(not pair.answers for pair in group) <= 2
        assert len({pair.paragraph for pair in group}) == len(group)
    assert any(sum(not pair.answers for pair in group) == 2 for group in groups)
    assert any(not any(pair.answers for pair in group) for group in groups)


def test_the_loss_is_that_of_the_right_windows_against_all_and_none():
    scores = torch.tensor([1.0, -2.0, 0.5])
    groups = torch.tensor([[0, 1, 2], [0, 3, 0]])  # windows from 1; 0 for no answer, then for padding
    right = torch.tensor([[False, True, False], [True, False, False]])
    first = np.log(np.exp(0) + np.exp(1.0) + np.exp(-2.0)) - 1.0
    second = np.log(np.exp(0) + np.exp(0.5)) - 0.0
    assert float(paragraph_loss(scores, groups, right)) == pytest.approx((first + second) / 2, abs=1e-6)


def test_the_best_paragraph_contains_the_answer(trained):
    folder, scores = trained
    assert scores["as torch, 32 bits"] == 1
    reader, right = OnnxReader(folder), []
    for group in draw_question_groups(SOURCES, "unseen", lengths=(30, 60), negative_paragraphs=5):
        answers = reader.extract([(pair.question, pair.text) for pair in group])
        paragraphs = [best[0].paragraph if best else -99.0 for best in answers]
        if any(pair.answers for pair in group):
            right.append(bool(group[int(np.argmax(paragraphs))].answers))
    assert sum(right) / len(right) > 0.9


def test_a_base_keeps_its_answers_when_it_begins_to_score_paragraphs(bert, trained, tmp_path):
    folder, _ = trained
    plain = load_answerer(str(bert))
    scoring = load_answerer(str(folder / "torch"), 3)
    assert plain.qa_outputs.out_features == 2
    assert scoring.qa_outputs.out_features == scoring.config.num_labels == 3
    plain.save_pretrained(tmp_path)
    widened = load_answerer(str(tmp_path), 3)
    assert torch.equal(widened.qa_outputs.weight[:2], plain.qa_outputs.weight)
    assert not widened.qa_outputs.weight[2].any()
