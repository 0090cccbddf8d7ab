"""The commands `capr annotate` and `capr suggest`."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from capr.annotate import annotate
from capr.cli import app
from capr.documents import Document

NOTE = "Denies chest pain. Father had a heart attack. Takes Lasix [x].\n"
OWN = "code,name,synonyms,kind\nLOCAL:1,zorblax sign,zorb|MI,finding\n"


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys):
    """A function that runs a command in this process, because loading the tagger is slow, and returns its result."""

    def command(*arguments: str, stdin: bytes = b"", cwd: Path | None = None, **variables: str) -> Result:
        for name, value in ({"COLUMNS": "200"} | variables).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(cwd or Path.cwd())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setattr(sys, "argv", ["capr", *arguments])
        with pytest.raises(SystemExit) as exit_error:
            app()
        return Result(exit_error.value.code or 0, *capsys.readouterr())

    return command


def lines(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text(NOTE)
    (tmp_path / "own.csv").write_text(OWN)
    (tmp_path / "bad.csv").write_text("code,name\n,zorb\n")
    return tmp_path


def test_annotate_shows_the_text_with_its_mentions(run, folder):
    result = run("annotate", "a.txt", cwd=folder)
    assert (result.returncode, result.stderr) == (0, "")
    output = result.stdout
    assert output.startswith("a.txt\n")
    assert "Denies [chest pain] [¬: Denies]. Father had a [heart attack] [family: Father]. Takes [Lasix] [x]." in output
    assert "1 symptom, 1 disease, 1 drug in 1 document" in output
    assert "\x1b" not in output


def test_annotate_shows_colours_on_a_terminal(run, folder):
    output = run("annotate", "--no-tagger", "a.txt", cwd=folder, FORCE_COLOR="1", TERM="xterm").stdout
    assert "\x1b[1;9;33mchest pain\x1b[0m" in output  # struck through, since it is negated
    assert "\x1b[1;31mheart attack\x1b[0m" in output


def test_annotate_agrees_with_python(run, folder):
    document = Document("a.txt", NOTE)
    for options, tagger in ((["--json"], True), (["--json", "--no-tagger"], False)):
        result = run("annotate", "a.txt", *options, cwd=folder)
        assert (result.returncode, result.stderr) == (0, "")
        assert lines(result) == [mention.as_json(document) for mention in annotate(document, tagger)]


def test_annotate_without_the_tagger_finds_names_only(run, folder):
    (folder / "b.txt").write_text("Methotrexate was stopped because of zorblitis.")
    assert [line["text"] for line in lines(run("annotate", "b.txt", "--json", cwd=folder))] == [
        "Methotrexate",
        "zorblitis",
    ]
    assert [line["text"] for line in lines(run("annotate", "b.txt", "--json", "--no-tagger", cwd=folder))] == [
        "Methotrexate"
    ]


def test_annotate_reads_standard_input_and_a_vocabulary(run, folder):
    result = run("annotate", "-", "--json", "--no-tagger", "--vocabulary", "own.csv", cwd=folder, stdin=b"No zorb. MI.")
    output = [(line["text"], line["kind"], line["concept"]["code"], line["negated"]) for line in lines(result)]
    assert output == [("zorb", "finding", "LOCAL:1", True), ("MI", "finding", "LOCAL:1", False)]
    output = run("annotate", "-", "--no-tagger", "--vocabulary", "own.csv", cwd=folder, stdin=b"zorb").stdout
    assert "1 finding in 1 document" in output


def test_annotate_reports_that_there_is_no_mention(run, folder):
    result = run("annotate", "-", "--no-tagger", stdin=b"Well.")
    assert result.returncode == 0
    assert "nothing found in 1 document" in result.stdout


def test_a_note_cannot_control_the_terminal(run, folder):
    (folder / "e.txt").write_text("fever \x1b[2J\x07 end")
    assert "\x1b" not in run("annotate", "--no-tagger", "e.txt", cwd=folder).stdout


@pytest.mark.parametrize("command", [["annotate", "a.txt", "--no-tagger"], ["suggest", "zorb"]])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("bad.csv", "Error: bad.csv, line 2: 'zorb' has no code. Fix: give it one"),
        ("nowhere.csv", "Error: nowhere.csv: cannot be read ("),
    ],
)
def test_a_bad_vocabulary_is_reported(run, folder, command, table, message):
    result = run(*command, "--vocabulary", table, cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert "Fix: " in result.stderr
    assert "Traceback" not in result.stderr


def test_annotate_continues_after_a_problem(run, folder):
    (folder / "b.jsonl").write_text('broken\n{"id": "n1", "text": "fever"}\n')
    result = run("annotate", "b.jsonl", "--json", "--no-tagger", cwd=folder)
    assert result.returncode == 1
    assert [line["document"] for line in lines(result)] == ["n1"]
    assert "b.jsonl, line 1: broken JSON" in result.stderr


def test_suggest_forgives_a_typing_error(run):
    result = run("suggest", "hart att")
    assert (result.returncode, result.stderr) == (0, "")
    words = result.stdout.split()
    assert " ".join(words[:4]) == "name means kind code"
    assert " ".join(words[-6:]) == "heart attack myocardial infarction disease MESH:D009203"


def test_suggest_prints_json_lines(run, folder):
    assert lines(run("suggest", "hart att", "--json")) == [
        {
            "name": "heart attack",
            "kind": "disease",
            "concept": {"system": "MESH", "code": "MESH:D009203", "name": "myocardial infarction"},
        }
    ]
    completions = lines(run("suggest", "zorb", "--json", "--vocabulary", "own.csv", "-k", "1", cwd=folder))
    assert [(line["name"], line["kind"]) for line in completions] == [("zorb", "finding")]


def test_suggest_without_a_completion(run):
    result = run("suggest", "qqqqq")
    assert result.returncode == 1
    assert result.stdout == "No name begins with 'qqqqq'.\n"
    assert "there is no prefix to complete. Fix: " in run("suggest", " ").stderr
    assert run("suggest", "qqqqq", "--json").stdout == ""


@pytest.mark.parametrize("arguments", [["suggest"], ["suggest", "a", "-k", "0"], ["annotate"]])
def test_an_invalid_command(run, arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_bad_vocabulary_leaves_no_traceback(folder):
    command = [sys.executable, "-c", "from capr.cli import app; app()", "suggest", "zorb", "--vocabulary", "bad.csv"]
    result = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"Error: bad.csv, line 2: ")
