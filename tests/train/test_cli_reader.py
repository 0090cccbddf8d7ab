"""`capr train reader`, as a user runs it."""

import io
import json
import random
import sys
from typing import NamedTuple

import pytest

from capr.cli import app
from capr.documents import Document, Span
from capr.supervise import reports as supervised
from capr.supervise.reports import Asked, Report

TINY = ("--epochs", "1", "--batch", "8", "--device", "cpu", "--learning-rate", "1e-3", "--validation", "0.3")
WORDS = "the of is and in with often for days night".split()


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    def command(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        monkeypatch.setattr(sys, "argv", ["capr", "train", "reader", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            app()
        return Result(left.value.code or 0, *capsys.readouterr())

    return command


@pytest.fixture
def read_reports(monkeypatch):
    """Reports by the name of their file, in place of what reads files."""

    def read(path):
        draw = random.Random(path.name)
        found = []
        for number in range(0 if path.name == "empty.json" else 20):
            text = " ".join(["tablets", *draw.choices(WORDS, k=60)])
            found.append(Report(Document(f"{path.name} {number}", text), (Asked("q", "treatment?", (Span(0, 7),)),)))
        return found

    monkeypatch.setattr(supervised, "read_reports", read, raising=False)


def test_reports_become_a_reader(run, read_reports, bert, tmp_path):
    text = "Often the fever is in the night. The tablets for fever with rest and drops. Rest often for days and days."
    (tmp_path / "plain.jsonl").write_text(json.dumps({"id": "1", "text": text}) + "\n")
    files = ("a.json", "b.json=0.5", "--texts", tmp_path / "plain.jsonl")
    result = run(*files, "--base", bert, "-o", tmp_path / "out", "--length", 150, "--licence", "CC0", *TINY)
    assert result.code == 0, result.err
    assert result.out.startswith(f"{tmp_path / 'out'}: F1 ")
    assert "validation F1 " in result.err
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert facts["settings"]["lengths"] == [50, 250]
    assert facts["data"]["a.json"] == "20 questions, 1 times"
    assert facts["data"]["b.json"] == "20 questions, 0.5 times"
    assert facts["data"]["recurring terms"].endswith("questions, 1 times")
    assert facts["licence"] == "CC0"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["kind"] == "reader"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["empty.json"], "empty.json has no questions. Fix: "),
        (["a.json=much"], "'a.json=much' names no file and no weight. Fix: "),
        (["a.json=-1"], "'a.json=-1' names no file and no weight. Fix: "),
        (["a.json", "--device", "tpu"], "--device knows no 'tpu'. Fix: "),
        (["a.json", "--layers", "9"], "9 layers of the base cannot be kept: it has 2. Fix: "),
        (["a.json", "--teacher", "nowhere"], "nowhere is no teacher: it is no reader. Fix: "),
        (["a.json", "--validation", "0"], "questions to train on and 0 to validate with, which is too few. Fix: "),
    ],
)
def test_what_is_wrong_is_told(run, read_reports, bert, tmp_path, arguments, said):
    given = dict(zip(TINY[::2], TINY[1::2], strict=True))
    rest = [part for name, value in given.items() if name not in arguments for part in (name, value)]
    result = run(*arguments, "--base", bert, "-o", tmp_path / "out", *rest)
    assert result.code == 2
    assert said in result.err
