"""The progress of training on stderr."""

import io
import re
import subprocess
import sys

import pytest
from rich.console import Console

from capr.cli import inputs, training_progress
from capr.cli.training_progress import Lines, show_progress
from capr.train.loop import TrainingStatus


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(training_progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_are_printed_every_few_seconds_and_at_begin_and_end(clock, capsys):
    report_progress = Lines(every=5)
    for step in range(1, 101):
        report_progress(TrainingStatus(step, 100, 1 / step, stage="bi-encoder"))
        clock[0] += 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "bi-encoder, step 1 of 100, loss 1.000"
    assert lines[1] == "bi-encoder, step 6 of 100, loss 0.167, 2 min left"
    assert lines[-1] == "bi-encoder, step 100 of 100, loss 0.010, 0 s left"
    assert len(lines) == 21


def test_each_stage_has_its_own_time(clock, capsys):
    report_progress = Lines()
    report_progress(TrainingStatus(1, 2, None, stage="words"))
    clock[0] += 4000
    report_progress(TrainingStatus(2, 2, None, stage="words"))
    report_progress(TrainingStatus(50, 100, 0.5, stage="cdv"))  # resumed
    clock[0] += 100
    report_progress(TrainingStatus(51, 100, 0.5, stage="cdv"))
    assert capsys.readouterr().err.splitlines() == [
        "words, step 1 of 2",
        "words, step 2 of 2, 0 s left",
        "cdv, step 50 of 100, loss 0.500",
        "cdv, step 51 of 100, loss 0.500, 1 h 22 min left",
    ]


def test_only_the_first_process_reports_progress(capsys):
    for is_first in (True, False):
        with show_progress(is_first) as progress:
            progress(TrainingStatus(4, 8, 0.25, {"R@1": 0.5}))
    assert capsys.readouterr().err == "step 4 of 8, loss 0.250\nstep 4 of 8: validation R@1 50.0\n"


def test_a_command_reports_its_progress_to_a_pipe(bert, world, tmp_path):
    world.save(tmp_path / "world.pairs.gz")
    options = [
        "--base",
        bert,
        "-o",
        tmp_path / "out",
        "--device",
        "cpu",
        "--epochs",
        "2",
        "--batch",
        "8",
        "--pieces",
        "32",
    ]
    program = "import torch; torch.set_num_threads(1); from capr.cli import app; app()"
    command = [sys.executable, "-c", program, "train", "bi", tmp_path / "world.pairs.gz", *options]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    # A small base may rank differently in 8 bits, but this test is not about ranking.
    lines = [line for line in result.stderr.splitlines() if line.startswith("bi-encoder, step")]
    assert re.fullmatch(r"bi-encoder, step 1 of 10, loss \d+\.\d{3}", lines[0]), result.stderr
    assert re.fullmatch(r"bi-encoder, step 10 of 10, loss \d+\.\d{3}, \d+ s left", lines[-2])
    assert re.fullmatch(r"bi-encoder, step 10 of 10: validation R@1 [\d.]+, R@5 [\d.]+", lines[-1])


def test_a_bar_has_no_speed_before_the_first_item_is_done(monkeypatch):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=100)
    monkeypatch.setattr(inputs, "terminal", lambda stderr: console)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with inputs.progress("draws") as report:
        report(0, 40)
    assert "0 of 40 draws " in output.getvalue()
    assert "/s" not in output.getvalue()
    with inputs.progress("draws") as report:
        report(20, 40)
    assert "20 of 40 draws (" in output.getvalue()
