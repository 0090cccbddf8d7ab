"""`capr train reader`, as a user runs it."""

import json
import random

import pytest

from capr.documents import Document, Span
from capr.supervise.reports import Report, ReportQuestion, write_squad
from capr.train import loop

TINY = ("--epochs", "1", "--batch", "8", "--device", "cpu", "--learning-rate", "1e-3", "--validation", "0.3")
WORDS = "the of is and in with often for days night".split()


@pytest.fixture(autouse=True)
def files(monkeypatch, tmp_path):
    """Files of reports in the current folder; one has no questions."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json", "empty.json"):
        draw = random.Random(name)
        questions = () if name == "empty.json" else (ReportQuestion("q", "treatment?", (Span(0, 7),)),)
        texts = (" ".join(["tablets", *draw.choices(WORDS, k=60)]) for _ in range(20))
        write_squad([Report(Document(f"{name} {n}", text), questions) for n, text in enumerate(texts)], name)


def test_reports_become_a_reader(run, bert, tmp_path):
    text = "Often the fever is in the night. The tablets for fever with rest and drops. Rest often for days and days."
    (tmp_path / "plain.jsonl").write_text(json.dumps({"id": "1", "text": text}) + "\n")
    files = ("a.json", "b.json=0.5", "--texts", tmp_path / "plain.jsonl")
    result = run("reader", *files, "--base", bert, "-o", tmp_path / "out", "--length", 150, "--licence", "CC0", *TINY)
    assert result.code == 0, result.err
    assert result.out.startswith(f"{tmp_path / 'out'}: F1 ")
    assert "validation F1 " in result.err
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert facts["settings"]["lengths"] == [50, 250]
    assert facts["data"]["a.json"] == "20 questions, weight 1"
    assert facts["data"]["b.json"] == "20 questions, weight 0.5"
    assert facts["data"]["recurring terms"].endswith("questions, weight 1")
    assert facts["licence"] == "CC0"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["kind"] == "reader"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.json"], "empty.json has no questions. Fix: "),
        (["a.json=much"], "'a.json=much' is neither a file nor a file with a weight. Fix: "),
        (["a.json=-1"], "'a.json=-1' is neither a file nor a file with a weight. Fix: "),
        (["a.json", "--device", "tpu"], "--device does not accept 'tpu'. Fix: "),
        (["a.json", "--layers", "9"], "9 layers of the base cannot be kept: it has 2. Fix: "),
        (["a.json", "--teacher", "nowhere"], "there is no folder nowhere. Fix: name the folder of a reader"),
        (["a.json", "--validation", "0"], "questions to train on and 0 to validate with, which is too few. Fix: "),
    ],
)
def test_bad_settings_raise_an_error(run, bert, tmp_path, arguments, message):
    options = dict(zip(TINY[::2], TINY[1::2], strict=True))
    rest = [part for name, value in options.items() if name not in arguments for part in (name, value)]
    result = run("reader", *arguments, "--base", bert, "-o", tmp_path / "out", *rest)
    assert result.code == 2
    assert message in result.err


def test_plain_text_has_no_questions(run, bert, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("Lisinopril 20 mg daily.")
    (tmp_path / "notes" / "b.txt").write_text("Chest pain.")
    result = run("reader", "notes", "--base", bert, "-o", tmp_path / "out", *TINY)
    assert result.code == 2
    fix = "make questions from it with capr questions notes -o questions.json, and name that file"
    assert (
        result.err == f"Error: notes has plain text without questions, and not SQuAD's or emrQA's JSON. Fix: {fix}.\n"
    )


def test_at_least_one_report_validates(run, bert, tmp_path):
    whole = json.loads((tmp_path / "a.json").read_text())
    whole["data"] = whole["data"][:9]
    (tmp_path / "few.json").write_text(json.dumps(whole))
    options = dict(zip(TINY[::2], TINY[1::2], strict=True)) | {"--validation": "0.001", "--length": "150"}
    rest = [part for option in options.items() for part in option]
    result = run("reader", "few.json", "--base", bert, "-o", tmp_path / "out", *rest)
    assert result.code == 0, result.err
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert facts["data"]["validation questions"] == 1


def test_other_questions_are_not_resumed(run, bert, tmp_path, monkeypatch):
    arguments = ("--base", bert, "-o", tmp_path / "out", "--length", 150, *TINY)
    with monkeypatch.context() as patch:
        save = loop.Loop._save

        def stopping(self):
            save(self)
            raise KeyboardInterrupt

        patch.setattr(loop.Loop, "_save", stopping)
        assert run("reader", "a.json", *arguments).code == 130
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.json").write_text(text.replace("treatment?", "remedy???"))
    result = run("reader", "a.json", *arguments, "--resume")
    assert result.code == 2
    assert "belongs to a run with other training data. Fix: name the same documents" in result.err
    (tmp_path / "a.json").write_text(text)
    result = run("reader", "a.json", *arguments, "--resume")
    assert result.code == 0, result.err


def test_a_bad_file_raises_an_error(run, bert, tmp_path):
    whole = json.loads((tmp_path / "a.json").read_text())
    whole["data"].append(whole["data"][0])
    (tmp_path / "twice.json").write_text(json.dumps(whole))
    result = run("reader", "twice.json", "--base", bert, "-o", tmp_path / "out", "--length", 150, *TINY)
    assert result.code == 0, result.err
    assert "was read before" in result.err
