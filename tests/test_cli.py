"""The commands that read and segment documents, and the options of all commands."""

import json
import subprocess
import sys
from pathlib import Path

import commands
import pytest

import capr
from capr.documents import Document
from capr.segment import passages, sections

NOTE = "ALLERGIES: None.\nPLAN:\nRest. Drink.\n"


def run(*arguments: str, stdin: bytes | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess:
    code = "from capr.cli import app; app()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, input=stdin, cwd=cwd, capture_output=True, check=False)


def lines(result: subprocess.CompletedProcess) -> list[dict]:
    return [json.loads(line) for line in result.stdout.decode().splitlines()]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text(NOTE)
    (tmp_path / "b.jsonl").write_text('{"id": "n1", "text": "é 🩺\\r\\n", "patient": "p1"}\nbroken\n')
    return tmp_path


def test_read_prints_json_lines_and_problems(folder):
    result = run("read", "--json", str(folder))
    assert result.returncode == 1
    first, second = lines(result)
    assert (first["id"], first["text"]) == ("a.txt", NOTE)
    assert second == {
        "id": "n1",
        "title": "",
        "text": "é 🩺\r\n",
        "metadata": {"source": folder.name, "file": "b.jsonl", "patient": "p1"},
    }
    errors = result.stderr.decode()
    assert "b.jsonl, line 2: broken JSON at column 1 (Expecting value). Fix: write one complete JSON object" in errors
    assert "1 problem: capr skipped the input named above and read the rest." in errors


def test_read_shows_a_table(folder):
    result = run("read", str(folder / "a.txt"))
    assert result.returncode == 0
    output = result.stdout.decode()
    assert "a.txt" in output
    assert "1 document, 36 characters (1 text)" in output


def test_brackets_in_a_note_are_printed_unchanged(tmp_path):
    (tmp_path / "a[b].txt").write_text("[x] yes [/sic] :smile: [red]ok")
    output = run("segment", "--by", "section", str(tmp_path)).stdout.decode()
    assert "a[b].txt" in output
    assert "[x] yes [/sic] :smile: [red]ok" in output


def test_many_notices_do_not_hide_a_problem(tmp_path):
    for i in range(30):
        (tmp_path / f"{i:02}.txt").write_bytes("38°".encode("cp1252"))
    (tmp_path / "zz.txt").write_bytes(b"bad \x81")
    result = run("read", str(tmp_path))
    assert result.returncode == 1
    assert "zz.txt" in result.stderr.decode()
    assert "... and 25 more notices" in result.stderr.decode() or "... and 26 more notices" in result.stderr.decode()


def test_commands_do_not_overwrite_files_of_the_user(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("PLAN: rest")
    result = run("headings", str(note), "-o", str(note))
    assert result.returncode == 2
    assert note.read_text() == "PLAN: rest"
    (tmp_path / "demo" / "notes").mkdir(parents=True)
    (tmp_path / "demo" / "notes" / "metadata.csv").write_text("mine")
    result = run("samples", "demo", cwd=tmp_path)
    assert result.returncode == 2
    assert "exists already and is not the sample" in result.stderr.decode()


def test_formats_are_recognised_on_standard_input():
    assert [d["id"] for d in lines(run("read", "-", "--json", stdin=b"id,note_text\n1,a\n2,b\n"))] == ["1", "2"]
    assert [d["id"] for d in lines(run("read", "-", "--json", stdin=b'[{"id": 1, "text": "a"}]'))] == ["1"]


def test_read_never_cuts_a_date(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    record = {"id": "d" * 50, "text": "x" * 1234, "patient": "p" * 20, "date": "2024-11-19T08:30", "type": "t" * 50}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    output = run("read", str(tmp_path)).stdout.decode()
    assert " date " in output
    assert " 2024-11-19 " in output
    assert " 1,234 " in output
    assert "dd…" in output
    assert "tt…" in output
    assert max(map(len, output.splitlines())) <= 80


def test_read_strict_stops_at_a_problem(folder):
    result = run("read", "--strict", "--json", str(folder))
    assert result.returncode == 1
    assert len(lines(result)) == 2  # the documents before the problem
    assert result.stderr.decode().startswith("Error: ")
    assert "Fix: write one complete JSON object per line." in result.stderr.decode()


def test_json_lines_can_be_read_again(folder):
    json_lines = run("read", "--json", str(folder / "a.txt")).stdout
    result = run("read", "--json", "-", stdin=json_lines)
    assert result.returncode == 0
    assert result.stdout == json_lines


def test_replace_allows_duplicates(folder):
    twice = [str(folder / "a.txt")] * 2
    assert run("read", "--json", *twice).returncode == 1
    result = run("read", "--json", "--replace", *twice)
    assert result.returncode == 0
    assert len(lines(result)) == 2


def test_columns_of_a_table(tmp_path):
    (tmp_path / "x.csv").write_text("key,findings,impression\n7,Clear.,Normal.\n")
    result = run(
        "read", "--json", "--column", "id=key", "--column", "text=findings+impression", str(tmp_path / "x.csv")
    )
    (document,) = lines(result)
    assert (document["id"], document["text"]) == ("7", "Clear.\n\nNormal.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["read", "nowhere"], "nowhere: there is no such file or folder"),
        (["read", ".", "--format", "word"], "there is no format 'word'. Fix: use one of"),
        (["read", ".", "--column", "text"], "does not name a field and its column. Fix: write --column text=NOTE"),
        (["read", ".", "--column", "body=x"], "there is no field 'body'"),
        (["segment", ".", "--by", "word"], "--by"),
        (["segment", ".", "--headings", "nowhere.json"], "Fix: make it with `capr headings FILE... -o nowhere.json`"),
        (["segment", ".", "--text"], "--text has no effect without --json"),
        (["segment", ".", "--threshold", "3"], "--threshold has no effect without --headings"),
        (["segment", ".", "--by", "sentence", "--words", "3"], "--words has no effect without --by passage"),
        (["read", ".", "--column", "text=a", "--column", "text=b"], "--column names the text twice"),
        (["read", "-", "-"], "standard input (-) is named twice"),
        (["read", ""], "a path is empty"),
    ],
)
def test_an_invalid_command_is_reported(tmp_path, arguments, message):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.decode().split())


def test_segment_agrees_with_python(folder):
    document = Document("a.txt", NOTE)
    by_section = lines(run("segment", "--by", "section", "--json", str(folder / "a.txt")))
    expected = [(s.span.begin, s.span.end, s.heading) for s in sections(document)]
    assert [(line["begin"], line["end"], line["heading"]) for line in by_section] == expected
    assert {line["document"] for line in by_section} == {"a.txt"}
    by_passage = lines(run("segment", "--json", "--words", "2", "--text", str(folder / "a.txt")))
    assert [line["text"] for line in by_passage] == [document[p.span] for p in passages(document, 2)]
    by_sentence = lines(run("segment", "--by", "sentence", "--json", str(folder / "a.txt")))
    assert [(NOTE[line["begin"] : line["end"]], line["heading"]) for line in by_sentence] == [
        ("ALLERGIES: None.", "ALLERGIES"),
        ("PLAN:", "PLAN"),
        ("Rest.", "PLAN"),
        ("Drink.", "PLAN"),
    ]
    by_length = lines(run("segment", "--by", "uniform", "--length", "10", "--json", str(folder / "a.txt")))
    assert [(line["begin"], line["end"]) for line in by_length] == [(0, 9), (9, 18), (18, 27), (27, 36)]


def test_headings_are_counted_saved_and_used(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("Verdict: well.\nRemark: none.\n" if i else "Verdict: ill.\n")
    counts = tmp_path / "counts.json"
    result = run("headings", str(tmp_path), "-o", str(counts))
    assert result.returncode == 0
    assert "      3  verdict\n      2  remark\n" in result.stdout.decode()
    options = ["--by", "section", "--headings", str(counts), "--threshold", "3", "--json"]
    segments = lines(run("segment", str(tmp_path / "1.txt"), *options))
    assert [line["heading"] for line in segments] == ["Verdict"]


def test_samples_are_written(tmp_path):
    result = run("samples", "demo", cwd=tmp_path)
    assert result.stdout.decode() == "Wrote 70 notes and 32 articles to demo/\n"
    reading = capr.read([tmp_path / "demo" / "notes", tmp_path / "demo" / "articles"])
    assert [document.text for document in reading] == [document.text for document in capr.samples.documents()]


def test_a_closed_pipe_is_not_an_error(folder):
    command = f"{sys.executable} -c 'from capr.cli import app; app()' segment --by sentence --json"
    notes = capr.samples.folder() / "notes"
    result = subprocess.run(f"{command} {notes} | head -1", shell=True, capture_output=True, check=True)
    assert result.stderr == b""


@pytest.mark.parametrize("group", [(), ("token",), ("train",), ("evaluate",)])
def test_the_help_does_not_cut_descriptions(tmp_path, group):
    _, _, listing = commands.run(tmp_path, *group, "--help").stdout.partition("Commands:\n")
    assert "..." not in listing
    assert "explain" not in listing.split()
    assert all(len(line) <= 80 for line in listing.splitlines())
    if not group:
        assert "for dense search; this replaces the vectors of another encoder." in " ".join(listing.split())


def test_the_version_is_printed():
    assert run("--version").stdout.decode() == f"capr {capr.__version__}\n"
