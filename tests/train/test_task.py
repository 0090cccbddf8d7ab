"""The training loop with the smallest task: a number that should become 3."""

import pytest
import torch
from torch import nn

from capr.documents import CaprError
from capr.models.family import Schedule
from capr.train.finish import begin
from capr.train.loop import CHECKPOINT, Loop, TrainingTask, fit
from capr.train.schedule import decay_by_epoch, linear_decay, warm_up_then_decay

SCHEDULE = Schedule(epochs=4, batch=2, learning_rate=0.1, patience=0, device="cpu")


class Three(TrainingTask):
    stage = "three"

    def __init__(self, average=0.0, judged=False):
        self.model = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.model.weight)
        self.epoch_steps, self.average, self.judged, self.seen = 5, average, judged, []

    def batch(self, step):
        return torch.full((2, 1), 1.0 + step % 2)

    def loss(self, batch):
        return (self.model(batch) - 3 * batch).square().mean()

    def validate(self):
        self.seen.append(self.value)
        return {"near": 1 / (1 + abs(3 - self.value))} if self.judged else None

    def optimizer(self, rate):
        return torch.optim.SGD(self.model.parameters(), rate)

    @property
    def value(self):
        return float(self.model.weight.detach())


def averaged(decay: float) -> float:
    """The running average, computed independently."""
    value = average = 0.0
    rate = warm_up_then_decay(20, SCHEDULE.warmup)
    for step in range(20):
        x = 1.0 + step % 2
        slope = 2 * x * (x * value - 3 * x)
        value -= 0.1 * rate(step) * max(-1.0, min(1.0, slope))
        average = decay * average + (1 - decay) * value
    return average


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_running_average_is_validated_and_saved(decay):
    task = Three(decay)
    fit(task, SCHEDULE)
    assert task.value == pytest.approx(averaged(decay), abs=1e-5)
    assert task.seen[-1] == pytest.approx(task.value)
    best = Three(decay, judged=True)
    assert fit(best, SCHEDULE) == {"near": pytest.approx(1 / (1 + abs(3 - best.value)))}
    assert best.value == pytest.approx(averaged(decay), abs=1e-5)


@pytest.mark.parametrize("judged", [False, True])
def test_the_running_average_continues_after_an_interruption(tmp_path, judged):
    whole, broken, again = (Three(0.9, judged) for _ in range(3))
    fit(whole, SCHEDULE)

    def stop(report):
        if report.step == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(broken, SCHEDULE, tmp_path, False, stop)
    steps = []
    fit(again, SCHEDULE, tmp_path, True, lambda report: steps.append((report.stage, report.step)))
    assert steps[0] == ("three", 11)
    assert again.value == whole.value


def test_checkpoints_come_as_often_as_validations(tmp_path):
    task = Three()
    task.epoch_steps = 20
    loop = Loop(
        task, Schedule(epochs=1, batch=2, learning_rate=0.1, validations=4, device="cpu"), tmp_path, lambda _: None
    )
    saved, save = [], loop._save
    loop._save = lambda: (saved.append(loop.step), save())
    loop.run(False)
    assert saved == [5, 10, 15, 20]
    assert torch.load(tmp_path / CHECKPOINT, weights_only=True)["step"] == 20


def test_learning_rates():
    assert [round(warm_up_then_decay(10, 0.2)(step), 3) for step in (0, 1, 2, 6, 10)] == [0.5, 1, 1, 0.5, 0]
    assert [linear_decay(10)(step) for step in (0, 5, 10)] == [1, 0.5, 0.02]
    assert [decay_by_epoch(0.5, 3)(step) for step in (0, 2, 3, 6)] == [1, 1, 0.5, 0.25]


def test_checkpoints_of_older_versions_continue_or_explain_why_not(tmp_path):
    fit(Three(), SCHEDULE, tmp_path)
    checkpoint = torch.load(tmp_path / CHECKPOINT, weights_only=True)
    del checkpoint["averaged"]
    torch.save(checkpoint, tmp_path / CHECKPOINT)
    again = Three()
    fit(again, SCHEDULE, tmp_path, resume=True)
    assert again.value == pytest.approx(float(checkpoint["model"]["weight"]))
    del checkpoint["step"]  # as discourse models had it
    torch.save(checkpoint, tmp_path / CHECKPOINT)
    with pytest.raises(
        CaprError, match=r"was written by an older version of capr. Fix: delete it, and start again without"
    ):
        fit(Three(), SCHEDULE, tmp_path, resume=True)


def test_only_the_first_process_deletes_the_files_of_another_model(tmp_path, monkeypatch):
    for process, there in (("1", True), ("0", False)):
        (tmp_path / "query.onnx").touch()
        monkeypatch.setenv("RANK", process)
        begin(tmp_path, resume=False)
        assert (tmp_path / "query.onnx").exists() is there
