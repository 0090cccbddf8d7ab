"""The command that asks."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

import capr
from capr.cli import typer_app
from capr.search import models

_spec = spec_from_file_location("fake_reader", Path(__file__).parent / "search" / "fake_reader.py")
fake_reader = module_from_spec(_spec)
_spec.loader.exec_module(fake_reader)
FakeReader = fake_reader.FakeReader

NOTE = "p03-2025-02-03-discharge"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The notes of some patients, and a library of them."""
    folder = tmp_path_factory.mktemp("ask")
    (folder / "notes").mkdir()
    for path in (capr.samples.folder() / "notes").iterdir():
        if path.name[:3] in ("p01", "p03", "met"):
            (folder / "notes" / path.name).write_bytes(path.read_bytes())
    run(folder, "index", "library", "notes", "--encoder", "none")
    return folder


@pytest.fixture(autouse=True)
def _reader(monkeypatch):
    readers = {"unsure": FakeReader(0.2), "steep": FakeReader(0.9, 0.89)}
    monkeypatch.setattr(models, "_loaded_reader", lambda folder: readers.get(folder.name, FakeReader()))
    monkeypatch.setenv("COLUMNS", "80")


def run(folder, *arguments, code=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(typer_app, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def ask(folder, *arguments, reader="model", code=0):
    return run(folder, "ask", *arguments, "--reader", reader, code=code)


def told(result):
    return " ".join(result.stdout.split())


def test_an_answer_is_shown_with_its_place_its_confidence_and_its_sentence(folder):
    result = ask(folder, "library", "1,000 mg IV q.12h.", "--patient", "p03")
    lines = result.stdout.splitlines()
    assert lines[0] == "1. 1,000 mg IV q.12h. (90 %)"
    assert lines[1].startswith(f"   {NOTE} [")
    assert lines[1].endswith("DISCHARGE MEDICATIONS")
    assert lines[2].startswith("   p03, 2025-02-03, Discharge summary")
    assert "Vancomycin [1,000 mg IV q.12h.], each dose over 2 hours" in told(result)
    assert lines[-1].endswith("passages of 3 documents read by fake")
    assert max(map(len, lines)) <= 80


def test_the_context_is_shown(folder):
    result = ask(folder, "library", "chest pain", "--document", "p01-2024-03-18-discharge", "--top", "1")
    assert "   context: negated (denies)" in result.stdout
    result = ask(folder, "library", "MI at age", "--document", "p01-2024-03-18-discharge")
    assert ", family history (Father)\n" in result.stdout


def test_other_places_and_less_likely_answers(folder):
    result = ask(folder, "notes", "vancomycin/Vancomycin", "--document", NOTE)
    assert f"also {NOTE} [" in told(result)
    assert "(80 %)" in told(result)
    result = ask(folder, "notes", "q.12h./Vancomycin", "--document", NOTE, "--threshold", "0.85")
    assert "Less likely, below the threshold of 85 %:" in result.stdout
    assert f"Vancomycin (80 %), {NOTE} [" in told(result)


def test_what_is_all_but_impossible_is_not_shown_beside_an_answer(folder):
    result = ask(folder, "notes", "q.12h./Vancomycin", "--document", NOTE, reader="steep")
    assert "q.12h. (90 %)" in result.stdout
    assert "Less likely" not in result.stdout
    result = ask(folder, "notes", "q.12h./Vancomycin", "--document", NOTE, "--json", reader="steep")
    assert len(json.loads(result.stdout)["answers"]) > 1


def test_no_answer_is_none(folder):
    result = ask(folder, f"notes/{NOTE}.txt", "warfarin?")
    assert result.stdout.splitlines()[0] == "The report does not say."
    result = ask(folder, f"notes/{NOTE}.txt", "1,000 mg IV", reader="unsure")
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "The report does not say.",
        "Best guess, below the threshold of 50 %:",
        "   1,000 mg IV (20 %)",
    ]
    assert ask(folder, "notes", "warfarin and zebra?").stdout.startswith("The documents do not say.")


def test_a_guess_that_is_all_but_impossible_is_not_shown(folder):
    result = ask(folder, f"notes/{NOTE}.txt", "zebra/1,000 mg IV", "--threshold", "0.95", reader="steep")
    assert result.stdout.splitlines()[0] == "The report does not say."
    assert "Best guess" not in result.stdout
    result = ask(folder, f"notes/{NOTE}.txt", "zebra/1,000 mg IV", "--json", reader="steep")
    assert json.loads(result.stdout)["answers"][0]["confidence"] < 0.1


def test_json_has_offsets(folder):
    found = json.loads(ask(folder, "library", "1,000 mg IV q.12h.", "--patient", "p03", "--json").stdout)
    (answer,) = found["answers"]
    text = (folder / "notes" / f"{NOTE}.txt").read_text()
    assert text[answer["begin"] : answer["end"]] == answer["text"] == "1,000 mg IV q.12h."
    assert text[answer["paragraph"]["begin"] : answer["paragraph"]["end"]] == answer["paragraph"]["text"]
    assert (found["found"], found["reader"], answer["metadata"]["patient"]) == (True, "fake", "p03")
    nothing = json.loads(ask(folder, "library", "zebra", "--filter", "patient=p03", "--json").stdout)
    assert (nothing["found"], nothing["answers"]) == (False, [])


def test_a_library_and_a_file_give_the_same_answers(folder):
    of_library, of_file = (
        json.loads(ask(folder, source, "vancomycin", "--document", NOTE, "--json").stdout)["answers"]
        for source in ("library", f"notes/{NOTE}.txt")
    )
    for one in (*of_library, *of_file):
        one["metadata"] = one["metadata"]["patient"]
    assert of_library == of_file


def test_a_file_of_several_documents(folder, tmp_path):
    lines = [{"id": name, "text": f"PLAN: 🩺 {name} mg Ünïcode."} for name in ("7", "8")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert "1. 7 mg Ünïcode (90 %)" in ask(folder, tmp_path / "a.jsonl", "7 mg Ünïcode").stdout
    assert ask(folder, tmp_path / "a.jsonl", "7 mg", "--document", "8").stdout.startswith("The report does not say.")
    refusal = str(ask(folder, tmp_path / "a.jsonl", "7 mg", "--document", "9", code=1).exception)
    assert "there is no document '9'. Fix: name one that is there (7, 8)." in refusal


def test_bad_input(folder, tmp_path):
    (tmp_path / "scan.bin").write_bytes(bytes(range(256)) * 20)
    result = ask(folder, tmp_path / "scan.bin", "why?", code=1)
    assert result.stdout == ""
    assert "it is not in a format that capr reads. Fix: " in result.stderr.replace("\n", " ")
    (tmp_path / "empty.txt").write_text("")
    assert ask(folder, tmp_path / "empty.txt", "why?").stdout == "There is nothing to read.\n"
    (tmp_path / "line.txt").write_text("lorem ipsum " * 80_000 + "warfarin 5 mg " + "dolor " * 5_000)
    shown = ask(folder, tmp_path / "line.txt", "warfarin 5 mg").stdout
    assert shown.startswith("1. warfarin 5 mg (90 %)")
    assert len(shown.splitlines()) < 15


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("library", " ?"), "there is no question. Fix: "),
        (("library", "why " * 300), "characters, and only 1,000 are read. Fix: "),
        (("nowhere", "why?"), "there is no such file or folder. Fix: "),
        (("notes", "why?", "--patient", "p03"), "notes is no library, and only a library can be filtered. Fix: "),
        (("library", "why?", "--top", "0"), "top is 0. Fix: "),
        (("library", "why?", "--threshold", "2"), "the threshold is 2.0. Fix: "),
        (("library", "why?", "--document", "n9"), "the library has no document 'n9'. Fix: "),
        (("library", "why?", "--generative", "http://127.0.0.1:9/v1"), "but no --generative-model. Fix: "),
        (("library", "why?", "--generative-model", "m"), "but no --generative. Fix: "),
        (("library", "why?", "--generative", "nowhere", "--generative-model", "m"), "is no address of a server. Fix: "),
    ],
)
def test_what_cannot_be_asked(folder, arguments, fact):
    assert fact in str(ask(folder, *arguments, code=1).exception)


def test_without_a_reader_there_is_nobody_to_ask(folder):
    assert "there is no reader of answers in" in str(run(folder, "ask", "library", "why?", code=1).exception)


def test_a_dead_server_is_told_and_the_extractive_reader_answers(folder):
    to = ("--generative", "http://127.0.0.1:9/v1", "--generative-model", "tiny")
    result = ask(folder, "library", "1,000 mg IV", "--patient", "p03", *to)
    assert result.stdout.startswith("1. 1,000 mg IV (90 %)")
    assert "Note: http://127.0.0.1:9/v1/chat/completions does not answer" in result.stderr
    assert "The extractive reader answers instead." in result.stderr
