"""Training, export and calibration of readers, and errors."""

import json
import math
import random
import re
from dataclasses import replace

import pytest
import torch
from reports import REPORTS, SOURCES, family_of, small_reports

from capr.documents import CaprError
from capr.models.bases import load_answerer
from capr.models.family import Schedule
from capr.models.reader import ReaderFamily, soft_loss
from capr.runtime.reader import OnnxReader
from capr.supervise.paragraph_questions import WeightedReports, draw_questions, whole_reports
from capr.train import loop
from capr.train import reading as training
from capr.train.reading import ReadingTask, train, validation_scores

SCHEDULE = Schedule(epochs=30, batch=16, learning_rate=3e-3, patience=0, device="cpu")


@pytest.fixture(scope="module")
def trained(bert, tmp_path_factory):
    """A trained reader: its folder, the exported objective, its scores, and the reported progress."""
    folder = tmp_path_factory.mktemp("reader")
    built, reports = [], []
    with pytest.MonkeyPatch.context() as patch:
        make = ReaderFamily.objective
        patch.setattr(ReaderFamily, "objective", lambda *arguments: built.append(make(*arguments)) or built[0])
        scores = train(SOURCES, family_of(bert, name="tiny"), SCHEDULE, folder, progress=reports.append)
    return folder, built[0], scores, reports


def test_the_reader_learns_to_answer_and_to_refuse(trained):
    _, objective, scores, reports = trained
    losses = [report.loss for report in reports]
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    assert scores["F1"] > 0.8
    assert scores["answered"] > 0.8
    assert scores["refused"] > 0.8
    unseen = draw_questions([WeightedReports(small_reports(20, seed=9))], "unseen", lengths=(80, 80))
    actual = validation_scores(unseen, objective.extract(unseen))
    assert actual["F1"] > 0.7
    assert 0.3 < sum(bool(example.answers) for example in unseen) / len(unseen) < 0.6


def test_a_folder_has_all_that_a_program_needs(trained):
    folder, _, scores, _ = trained
    expected = {"model.onnx", "model.fp32.onnx", "tokenizer.json", "manifest.json", "config.json", "torch"}
    assert {path.name for path in folder.iterdir()} == expected | {"README.md", "training.json"}
    manifest = json.loads((folder / "manifest.json").read_text())
    temperature, bias, threshold = (manifest.pop(name) for name in ("temperature", "bias", "threshold"))
    assert manifest == {"name": "tiny", "kind": "reader", "pieces": 40, "stride": 8, "question": 8, "answer": 8}
    assert temperature > 0
    assert math.isfinite(bias)
    assert 0 < threshold < 1
    facts = json.loads((folder / "training.json").read_text())
    assert facts["scores"] == scores
    assert facts["data"]["small"] == "160 questions, weight 1"
    card_text = (folder / "README.md").read_text()
    assert "Licence of the training data: CC0-1.0." in card_text
    assert str(folder.parent) not in card_text


def test_the_8_bit_reader_answers_like_the_32_bit_reader(trained):
    folder, objective, scores, _ = trained
    assert scores["as torch, 32 bits"] == 1
    assert scores["as torch, 8 bits"] > 0.9
    assert scores["F1, 8 bits"] == pytest.approx(scores["F1, 32 bits"], abs=0.05)
    questions = draw_questions([WeightedReports(small_reports(10, seed=5))], "bits", lengths=(80, 80))
    for torch_answer, onnx_answer in zip(
        objective.extract(questions), training.extract_answers(OnnxReader(folder), questions), strict=True
    ):
        assert torch_answer.margin == pytest.approx(onnx_answer.margin, abs=1.5)


def test_confidence_is_calibrated_and_the_threshold_tells_reports_apart(trained):
    folder, _, scores, _ = trained
    reader = OnnxReader(folder)
    assert scores["calibration error"] < 0.1
    assert scores["threshold"] == reader.threshold
    groups = whole_reports([WeightedReports(small_reports(60, seed=7))], 200, 12, None, 90, "unseen")
    answered, refused = [], []
    for group in groups:
        answers_by_paragraph = reader.read(group[0].question, [example.text for example in group])
        sure = max(answer.confidence for answers in answers_by_paragraph for answer in answers) >= reader.threshold
        (answered if any(example.answers for example in group) else refused).append(sure)
    assert sum(answered) / len(answered) > 0.75
    assert sum(refused) / len(refused) < 0.4


def weights(folder):
    return load_answerer(str(folder / "torch")).state_dict()


def same(weights_a, weights_b) -> bool:
    return weights_a.keys() == weights_b.keys() and all(
        torch.equal(weights_a[name], weights_b[name]) for name in weights_a
    )


def test_an_interrupted_run_ends_like_an_uninterrupted_one(new_base, tmp_path):
    base = new_base(tmp_path / "base", dropout=0.1)
    short = replace(SCHEDULE, epochs=3)
    expected = train(SOURCES, family_of(base), short, tmp_path / "whole", onnx=False)

    def stop(report):
        if report.scores:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SOURCES, family_of(base), short, tmp_path / "broken", progress=stop, onnx=False)
    steps = []
    record_step = lambda report: steps.append(report.step)  # noqa: E731
    assert train(SOURCES, family_of(base), short, tmp_path / "broken", True, record_step, onnx=False) == expected
    assert min(steps) > 10
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "broken"))
    assert not (tmp_path / "broken" / "checkpoint.pt").exists()
    assert not (tmp_path / "broken" / "model.onnx").exists()


def test_processes_make_the_same_batches_as_a_thread(bert, tmp_path):
    learned = {}
    for workers in (0, 2):
        torch.manual_seed(0)  # of the head, which is new
        objective = family_of(bert).objective("cpu")
        task = ReadingTask(objective, SOURCES, None, [], replace(SCHEDULE, epochs=1))
        task.workers, task.validate = workers, lambda: None
        run = loop.Loop(task, task.schedule, tmp_path / str(workers), loop.no_progress)
        run.run(False)
        learned[workers] = objective.model.state_dict()
        assert run.step == run.steps > 2
    assert all(torch.equal(learned[0][name], learned[2][name]) for name in learned[0])


def test_a_smaller_reader_comes_near_its_teacher(trained, tmp_path):
    folder, teacher, _, _ = trained
    pairs = draw_questions([WeightedReports(small_reports(20, seed=11))], "pairs", lengths=(80, 80))
    batch = teacher.batch([[pair] for pair in pairs], random.Random(0))
    with torch.no_grad():
        teacher_scores = teacher.model(**batch.inputs)
    apart = {}
    for name, hard in (("taught", 0.0), ("alone", 1.0)):
        mine = family_of(folder, layers=1, teacher=str(folder) if name == "taught" else "", label_weight=hard)
        built = mine.objective("cpu")
        assert built.model.answerer.config.num_hidden_layers == len(built.model.answerer.bert.encoder.layer) == 1
        task = ReadingTask(built, SOURCES, None, pairs[:20], replace(SCHEDULE, epochs=8))
        loop.fit(task, task.schedule)
        with torch.no_grad():
            apart[name] = soft_loss(built.model(**batch.inputs), teacher_scores, batch.allowed, 2.0).item()
    assert apart["taught"] < 0.7 * apart["alone"]


def test_an_unusable_teacher_is_named(trained, bert, new_base, tmp_path):
    folder = trained[0]
    with pytest.raises(CaprError, match=rf"{re.escape(str(bert))} is not a teacher: it is not a reader. Fix: "):
        family_of(bert, teacher=str(bert)).objective("cpu")
    other = new_base(tmp_path / "other", "roberta")
    with pytest.raises(CaprError, match=r"cannot teach: it cuts texts into other word pieces. Fix: "):
        family_of(other, teacher=str(folder)).objective("cpu")


def test_training_continues_from_an_export_alone(trained, tmp_path):
    folder = trained[0]
    for name in ("model.onnx", "config.json", "tokenizer.json", "manifest.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    whole, small = weights(folder), family_of(tmp_path).objective("cpu").model.answerer.state_dict()
    for name, weight in whole.items():
        assert torch.allclose(weight, small[name], atol=0.05 * float(weight.abs().max())), name


@pytest.mark.parametrize("share", [0.2, 0.0])
def test_too_few_questions_raise_an_error(bert, tmp_path, share):
    few = [WeightedReports(REPORTS[:2] if share else REPORTS)]
    with pytest.raises(
        CaprError, match=r"there are \d+ questions to train on and \d+ to validate with, which is too few"
    ):
        train(few, family_of(bert, validation=share), SCHEDULE, tmp_path)


def test_a_reader_of_another_architecture_is_trained_and_exported(roberta, tmp_path):
    scores = train(SOURCES, family_of(roberta), replace(SCHEDULE, epochs=2), tmp_path)
    assert scores["as torch, 32 bits"] > 0.95
    assert OnnxReader(tmp_path).read("treatment?", ["the tablets in the night", " "])[1] == []


def test_a_loss_that_is_not_finite_names_step_and_fix(bert, tmp_path):
    with pytest.raises(CaprError, match=r"the loss became nan in step \d+; .* Fix: continue with --resume and a lower"):
        train(SOURCES, family_of(bert), replace(SCHEDULE, learning_rate=1e30), tmp_path)
