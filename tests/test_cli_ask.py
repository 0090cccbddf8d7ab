"""The command `capr ask`."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from commands import run

import capr
from capr.search import models

_spec = spec_from_file_location("fake_reader", Path(__file__).parent / "search" / "fake_reader.py")
fake_reader = module_from_spec(_spec)
_spec.loader.exec_module(fake_reader)
FakeReader = fake_reader.FakeReader

NOTE = "p03-2025-02-03-discharge"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the notes of some patients, and a library of them."""
    folder = tmp_path_factory.mktemp("ask")
    (folder / "notes").mkdir()
    for path in (capr.samples.folder() / "notes").iterdir():
        if path.name[:3] in ("p01", "p03", "met"):
            (folder / "notes" / path.name).write_bytes(path.read_bytes())
    table = folder / "notes" / "metadata.csv"
    rows = table.read_text().splitlines(keepends=True)
    table.write_text("".join(row for row in rows if row.startswith(("file", "p01", "p03"))))
    run(folder, "index", "library", "notes", "--encoder", "none")
    return folder


@pytest.fixture(autouse=True)
def _reader(monkeypatch):
    readers = {"unsure": FakeReader(0.2), "steep": FakeReader(0.9, 0.89)}
    monkeypatch.setattr(models, "_loaded_reader", lambda folder: readers.get(folder.name, FakeReader()))
    monkeypatch.setenv("COLUMNS", "80")


def ask(folder, *arguments, reader="model", code=0):
    return run(folder, "ask", *arguments, "--reader", reader, code=code)


def text_of(result):
    return " ".join(result.stdout.split())


def test_an_answer_has_its_position_confidence_and_sentence(folder):
    result = ask(folder, "library", "1,000 mg IV q.12h.", "--patient", "p03")
    lines = result.stdout.splitlines()
    assert lines[0] == "1. 1,000 mg IV q.12h. (90%)"
    assert lines[1].startswith(f"   {NOTE} [")
    assert lines[1].endswith("DISCHARGE MEDICATIONS")
    assert lines[2].startswith("   p03, 2025-02-03, Discharge summary")
    assert "Vancomycin [1,000 mg IV q.12h.], each dose over 2 hours" in text_of(result)
    assert lines[-1].startswith("fake read ")
    assert lines[-1].endswith(" passages from 3 documents")
    assert max(map(len, lines)) <= 80


def test_an_answer_has_its_context(folder):
    result = ask(folder, "library", "chest pain", "--document", "p01-2024-03-18-discharge", "-k", "1")
    assert "   context: negated (denies)" in result.stdout
    result = ask(folder, "library", "MI at age", "--document", "p01-2024-03-18-discharge")
    assert ", family history (Father)\n" in result.stdout


def test_other_places_and_less_likely_answers(folder):
    result = ask(folder, "notes", "vancomycin/Vancomycin", "--document", NOTE)
    assert f"also {NOTE} [" in text_of(result)
    assert "(80%)" in text_of(result)
    result = ask(folder, "notes", "q.12h./Vancomycin", "--document", NOTE, "--threshold", "0.85")
    assert "Less likely, below the threshold of 85%:" in result.stdout
    assert f"Vancomycin (80%), {NOTE} [" in text_of(result)


def test_very_unlikely_answers_are_not_printed(folder):
    result = ask(folder, "notes", "q.12h./Vancomycin", "--document", NOTE, reader="steep")
    assert "q.12h. (90%)" in result.stdout
    assert "Less likely" not in result.stdout
    result = ask(folder, "notes", "q.12h./Vancomycin", "--document", NOTE, "--json", reader="steep")
    assert len(json.loads(result.stdout)["answers"]) > 1


def test_the_report_does_not_say(folder):
    result = ask(folder, f"notes/{NOTE}.txt", "warfarin?")
    assert result.stdout.splitlines()[0] == "The report does not say."
    result = ask(folder, f"notes/{NOTE}.txt", "1,000 mg IV", reader="unsure")
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "The report does not say.",
        "Best guess, below the threshold of 50%:",
        "   1,000 mg IV (20%)",
    ]
    assert ask(folder, "notes", "warfarin and zebra?").stdout.startswith("The documents do not say.")


def test_a_very_unlikely_guess_is_not_printed(folder):
    result = ask(folder, f"notes/{NOTE}.txt", "zebra/1,000 mg IV", "--threshold", "0.95", reader="steep")
    assert result.stdout.splitlines()[0] == "The report does not say."
    assert "Best guess" not in result.stdout
    result = ask(folder, f"notes/{NOTE}.txt", "zebra/1,000 mg IV", "--json", reader="steep")
    assert json.loads(result.stdout)["answers"][0]["confidence"] < 0.1


def test_json_has_offsets(folder):
    results = json.loads(ask(folder, "library", "1,000 mg IV q.12h.", "--patient", "p03", "--json").stdout)
    (answer,) = results["answers"]
    text = (folder / "notes" / f"{NOTE}.txt").read_text()
    assert text[answer["begin"] : answer["end"]] == answer["text"] == "1,000 mg IV q.12h."
    assert text[answer["passage"]["begin"] : answer["passage"]["end"]] == answer["passage"]["text"]
    assert (results["answered"], results["reader"], answer["metadata"]["patient"]) == (True, "fake", "p03")
    no_results = json.loads(ask(folder, "library", "zebra", "--filter", "patient=p03", "--json").stdout)
    assert (no_results["answered"], no_results["answers"]) == (False, [])


def test_a_library_and_a_file_give_the_same_answers(folder):
    library_answers, file_answers = (
        json.loads(ask(folder, source, "vancomycin", "--document", NOTE, "--json").stdout)["answers"]
        for source in ("library", f"notes/{NOTE}.txt")
    )
    for answer in (*library_answers, *file_answers):
        answer["metadata"] = answer["metadata"]["patient"]
    assert library_answers == file_answers


def test_a_file_of_several_documents(folder, tmp_path):
    lines = [{"id": name, "text": f"PLAN: 🩺 {name} mg Ünïcode."} for name in ("7", "8")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert "1. 7 mg Ünïcode (90%)" in ask(folder, tmp_path / "a.jsonl", "7 mg Ünïcode").stdout
    assert ask(folder, tmp_path / "a.jsonl", "7 mg", "--document", "8").stdout.startswith("The report does not say.")
    error = str(ask(folder, tmp_path / "a.jsonl", "7 mg", "--document", "9", code=1).exception)
    assert "there is no document '9'. Fix: name one of the documents read (7, 8)." in error


def test_bad_input(folder, tmp_path):
    (tmp_path / "scan.bin").write_bytes(bytes(range(256)) * 20)
    result = ask(folder, tmp_path / "scan.bin", "why?", code=1)
    assert result.stdout == ""
    assert "it is not in a format that capr reads. Fix: " in result.stderr.replace("\n", " ")
    (tmp_path / "empty.txt").write_text("")
    assert ask(folder, tmp_path / "empty.txt", "why?").stdout == "There is nothing to read.\n"
    (tmp_path / "line.txt").write_text("lorem ipsum " * 80_000 + "warfarin 5 mg " + "dolor " * 5_000)
    output = ask(folder, tmp_path / "line.txt", "warfarin 5 mg").stdout
    assert output.startswith("1. warfarin 5 mg (90%)")
    assert len(output.splitlines()) < 15


@pytest.mark.parametrize(
    "arguments", [("--patient", "P03"), ("--filter", "type=zz"), ("--document", NOTE, "--patient", "p01")]
)
def test_filters_that_no_document_passes(folder, arguments):
    result = ask(folder, "library", "vancomycin", *arguments, code=1)
    assert result.stdout == "No document matches the filters, so there was nothing to read.\n"
    assert json.loads(ask(folder, "library", "vancomycin", *arguments, "--json", code=1).stdout)["answers"] == []
    if arguments[0] == "--patient":
        assert "Did you mean p03?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("library", " ?"), "there is no question. Fix: "),
        (("library", "why " * 300), "characters, and only 1,000 are read. Fix: "),
        (("nowhere", "why?"), "there is no such file or folder. Fix: "),
        (("nowhere", "why?", "--patient", "p03"), "nowhere: there is no such file or folder. Fix: check the path."),
        (("notes", "why?", "--patient", "p03"), "notes is not a library, and only a library can be filtered. Fix: "),
        (("library", "why?", "-k", "0"), "k is 0. Fix: "),
        (("library", "why?", "--threshold", "2"), "the threshold is 2.0. Fix: "),
        (("library", "why?", "--document", "n9"), "the library has no document 'n9'. Fix: "),
        (("library", "why?", "--generative", "http://127.0.0.1:9/v1"), "--generative needs --generative-model. Fix: "),
        (("library", "why?", "--generative-model", "m"), "--generative-model needs --generative. Fix: "),
        (
            ("library", "why?", "--generative", "nowhere", "--generative-model", "m"),
            "is not the address of a server. Fix",
        ),
    ],
)
def test_invalid_arguments(folder, arguments, fact):
    assert fact in str(ask(folder, *arguments, code=1).exception)


def test_a_missing_reader_is_reported(folder):
    assert "there is no reader of answers in" in str(run(folder, "ask", "library", "why?", code=1).exception)


def test_without_the_server_the_extractive_reader_answers(folder):
    options = ("--generative", "http://127.0.0.1:9/v1", "--generative-model", "tiny")
    result = ask(folder, "library", "1,000 mg IV", "--patient", "p03", *options)
    assert result.stdout.startswith("1. 1,000 mg IV (90%)")
    assert "Notice: http://127.0.0.1:9/v1/chat/completions does not answer" in result.stderr
    assert "The extractive reader answers instead." in result.stderr
