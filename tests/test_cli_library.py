"""The commands that use a library."""

import json
import os
import subprocess
import sys

import commands
import pytest

import capr


def run(*arguments: str, folder, code: int = 0) -> subprocess.CompletedProcess:
    result = subprocess.run(
        [sys.executable, "-c", "from capr.cli import app; app()", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    run("samples", "demo", folder=folder)
    run("index", "library", "demo", folder=folder)
    return folder


def hits(folder, *arguments: str) -> list[dict]:
    return json.loads(run("search", "library", *arguments, "--json", folder=folder).stdout)["hits"]


def test_index_skips_documents_of_the_library(folder):
    printed = run("index", "library", "demo", folder=folder)
    assert "102 unchanged" in printed.stdout
    assert "capr encode library --encoder FOLDER" in printed.stderr


def test_index_of_nothing_leaves_no_library(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"bad \x81")
    for file in ("a.txt", "."):
        printed = run("index", "library", file, folder=tmp_path, code=1)
        assert printed.stdout == ""
        assert "a.txt" in printed.stderr
        assert "Nothing was indexed.\n1 problem: capr skipped the input named above.\n" in printed.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    (tmp_path / "b.txt").write_text("Aspirin.")
    run("index", "library", "b.txt", folder=tmp_path)
    assert "documents: none; now 1" in run("index", "library", "a.txt", folder=tmp_path, code=1).stdout


def test_index_cuts_documents_again_for_another_length(folder, tmp_path):
    note = " ".join(f"Sentence {i} has five words." for i in range(100))
    (tmp_path / "note.txt").write_text(note)
    assert "1 added (2 passages)" in run("index", "library", "note.txt", folder=tmp_path).stdout
    assert (
        "1 replaced (10 passages)" in run("index", "library", "note.txt", "--max-words", "50", folder=tmp_path).stdout
    )
    assert "1 unchanged" in run("index", "library", "note.txt", folder=tmp_path).stdout
    assert "no problems found" in run("verify", "library", folder=tmp_path).stdout


def test_hits_are_exact_and_complete(folder):
    texts = {document.id: document.text for document in capr.read(folder / "demo")}
    family_hits = hits(folder, "--entity", "heart attack", "--aspect", "family history", "--filter", "patient=p01")
    assert family_hits
    assert "MI" in [mention["text"] for hit in family_hits for mention in hit["mentions"]]
    for hit in family_hits:
        text = texts[hit["document"]]
        assert hit["text"] == text[hit["begin"] : hit["end"]]
        assert hit["metadata"]["patient"] == "p01"
        assert hit["stages"]["lexical"]["rank"] >= 1
        for sentence in hit["sentences"]:
            assert sentence["text"] == text[sentence["begin"] : sentence["end"]]
            assert 0 < sentence["score"] <= 1
        for begin, end in hit["highlights"]:
            assert hit["begin"] <= begin < end <= hit["end"]


def test_filters_and_contexts_restrict_the_hits(folder):
    all_hits = hits(folder, "chest pain", "-k", "100")
    affirmed = hits(folder, "chest pain", "-k", "100", "--without", "negated")
    assert 0 < len(affirmed) < len(all_hits)
    code = "MESH:D002637"
    for hit in affirmed:
        pains = [m for m in hit["mentions"] if m["concept"] and m["concept"]["code"] == code]
        assert any("negated" not in mention for mention in pains)
    (folder / "cohort.txt").write_text("p10\np30\n")
    assert {h["metadata"]["patient"] for h in hits(folder, "pain", "--filter", "patient=@cohort.txt")} == {"p10", "p30"}
    assert {h["aspect"] for h in hits(folder, "pain", "--filter", "section=HPI")} == {"history of present illness"}


def test_groups_have_one_hit_each(folder):
    groups = hits(folder, "fever", "--group", "patient")
    assert len({hit["group"] for hit in groups}) == len(groups) > 5
    assert any(hit["others"] for hit in groups)


def test_search_prints_positions_evidence_and_stages(folder):
    printed = run("search", "library", "vancomycin dose", "-k", "2", "--explain", "--neighbours", "1", folder=folder)
    assert "1. " in printed.stdout
    assert "[vancomycin]" in printed.stdout.lower()
    assert "lexical rank 1, score " in " ".join(printed.stdout.split())
    assert all(len(line) <= 80 for line in printed.stdout.splitlines())
    whole = run("search", "library", "vancomycin dose", "-k", "1", "--whole", folder=folder)
    assert "2 passages" in printed.stdout
    assert "1 passage " in whole.stdout


def test_export_writes_equal_documents(folder, tmp_path):
    run("export", "library", "-o", tmp_path / "out.jsonl", folder=folder)
    exported = list(capr.read(tmp_path / "out.jsonl"))
    assert len(exported) == 102
    assert exported == list(capr.read(folder / "demo"))
    again = run("export", "library", "-o", tmp_path / "out.jsonl", folder=folder, code=2)
    assert "out.jsonl exists already. Fix: name another file, or remove it first." in again.stderr
    missing = tmp_path / "missing" / "out.jsonl"
    error = run("export", "library", "-o", missing, folder=folder, code=2).stderr
    assert error == f"Error: {missing}: No such file or directory. Fix: check the path and the disk.\n"
    lines = run("export", "library", "--filter", "patient=p10", folder=folder).stdout.splitlines()
    assert {json.loads(line)["metadata"]["patient"] for line in lines} == {"p10"}


def test_an_export_of_nothing_says_why(folder, tmp_path):
    for output in ((), ("-o", tmp_path / "none.jsonl")):
        printed = run("export", "library", "--filter", "patiant=p10", *output, folder=folder, code=1)
        assert "".join(printed.stdout.split()) == (f"0documentsin{output[1]}" if output else "")
        assert printed.stderr == (
            "Notice: no document matches the filters\n"
            "Notice: no document has patiant=p10; the library has no field 'patiant'. Did you mean patient? "
            "capr stats LIBRARY lists the fields\n"
        )
    assert (tmp_path / "none.jsonl").read_bytes() == b""


def test_a_mistyped_patient_of_a_cohort_is_named(folder, tmp_path):
    cohort = ("--filter", "patient=p10", "--filter", "patient=P05")
    note = "Notice: no document has patient=P05; there are "
    commands = (
        ("export", "library", *cohort, "-o", tmp_path / "cohort.jsonl"),
        ("search", "library", "pain", *cohort, "--mode", "lexical"),
        ("token", "create", "library", "--state", tmp_path / "state", "--name", "study", *cohort),
    )
    for command in commands:
        printed = " ".join(run(*command, folder=folder).stderr.split())
        assert note in printed
        assert "Did you mean p05?" in printed


def test_filters_that_cannot_be_meant_are_errors(folder):
    for date, fix in (
        ("03/2024", "'03/2024' is not a date. Fix: write 2024, 2024-03, 2024-03-18 or 2024-01..2024-06."),
        ("2024-13", "'2024-13' is not a date. Fix: write 2024, 2024-03, 2024-03-18 or 2024-01..2024-06."),
        ("2024-06..2024-01", "the period ends before it begins. Fix: write 2024-01..2024-06."),
    ):
        for command in (("search", "library", "pain"), ("export", "library")):
            assert fix in run(*command, "--filter", f"date={date}", folder=folder, code=2).stderr
    printed = run("search", "library", "pain", "patient=p01", folder=folder)
    assert (
        "Notice: capr searched for patient=p01 as plain words. Did you mean --filter patient=p01?\n" in printed.stderr
    )


def test_an_empty_library_exports_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("Aspirin.")
    run("index", "library", "a.txt", folder=tmp_path)
    run("remove", "library", "a.txt", folder=tmp_path)
    assert run("export", "library", folder=tmp_path, code=1).stderr == "Notice: the library has no documents\n"


def test_remove_verify_stats_and_compact(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "notes" / f"{name}.txt").write_text(f"PLAN: Aspirin for {name}.")
    run("index", "library", "notes", folder=tmp_path)
    assert "1 document removed" in run("remove", "library", "a.txt", folder=tmp_path).stdout
    assert "has no document 'a.txt'" in run("remove", "library", "a.txt", folder=tmp_path, code=1).stderr
    assert (
        "no documents selected. Fix: give document ids or --filter."
        in run("remove", "library", folder=tmp_path, code=2).stderr
    )
    stats = json.loads(run("stats", "library", "--json", folder=tmp_path).stdout)
    assert (stats["documents"], stats["passages"], stats["encoder"]) == (2, 2, None)
    assert "documents" in run("stats", "library", folder=tmp_path).stdout
    assert "no problems found" in run("verify", "library", folder=tmp_path).stdout
    assert "MB freed" in run("compact", "library", folder=tmp_path).stdout
    assert json.loads(run("verify", "library", "--json", folder=tmp_path).stdout)["documents"] == 2


def test_a_changed_document_needs_replace(tmp_path):
    (tmp_path / "a.txt").write_text("Aspirin.")
    run("index", "library", "a.txt", folder=tmp_path)
    (tmp_path / "a.txt").write_text("Warfarin.")
    result = run("index", "library", "a.txt", folder=tmp_path, code=1)
    assert "with other contents" in result.stderr
    assert "--replace" in result.stderr
    assert "1 replaced" in run("index", "library", "a.txt", "--replace", folder=tmp_path).stdout
    assert hits(tmp_path, "warfarin")
    assert json.loads(run("search", "library", "aspirin", "--json", folder=tmp_path, code=1).stdout)["hits"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "nowhere", "pain"), "there is no library nowhere"),
        (("search", ".", "pain"), "Fix: name a library, or make a new one: capr index NEW ."),
        (
            ("search", "demo/notes/metadata.csv", "x"),
            "metadata.csv is not a library: it is a file. Fix: name a library",
        ),
        (("serve", "demo/notes/metadata.csv"), "make a new one: capr index NEW demo/notes/metadata.csv."),
        (("index", "demo", "demo/notes"), "demo has other files and is not a library"),
        (("search", "library"), "there is no query"),
        (("search", "library", "pain", "--entity", "x"), "a query cannot be combined with"),
        (("remove", "library", "a", "--filter", "patient=p1"), "document ids cannot be combined with filters"),
        (("search", "library", "pain", "--filter", "patient"), "does not name a field"),
        (("search", "library", "pain", "--filter", "patient=@none.txt"), "none.txt"),
        (("search", "library", "pain", "--mode", "dense"), "capr encode library"),
        (("search", "library", "pain", "-k", "0"), "1 to 10,000"),
        (("search", "library", "pain", "--ranker", "nowhere"), "there is no folder nowhere"),
        (("encode", "library"), "there is no encoder to encode with"),
        (("encode", "library", "--encoder", "demo"), "is not an encoder"),
        (("stats", "nowhere"), "there is no library nowhere"),
    ],
)
def test_errors_have_a_fact_and_a_fix(folder, arguments, message):
    result = run(*arguments, folder=folder, code=2)
    assert message in result.stderr
    assert "Fix:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "x", "y", "-k", "abc"), "'abc' is not a whole number. Fix: write digits alone, such as 10."),
        (("ask", "x", "y", "--threshold", "high"), "'high' is not a number. Fix: write one, such as 10 or 0.5."),
        (("suggest", "x", "-k", "0"), "'0' is too small. Fix: write 1 or more."),
        (("serve", "x", "--port", "70000"), "'70000' is too large. Fix: write 65,535 or less."),
        (("search", "x", "y", "--mode", "foo"), "there is no 'foo'. Fix: use hybrid, lexical, dense, cdv."),
        (("train", "bi", "x", "--epochs", "x"), "'x' is not a whole number."),
    ],
)
def test_invalid_values_are_reported_in_plain_words(tmp_path, arguments, message):
    errors = run(*arguments, folder=tmp_path, code=2).stderr
    assert message in errors
    assert "Input should be" not in errors
    assert "Value error" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ask", "x"), "Missing argument 'QUESTION'. Fix: add it, as in `capr ask library \"What dose of"),
        (("token", "create", "x"), "Missing option '--name'. Fix: add it, as in `capr token create library --name"),
        (("train", "poly", "x", "-o", "y"), "Missing option '--base'. Fix: add it, as in `capr train poly"),
        (("train", "gru"), "'gru'. Fix: use one of bi, poly, late, cross, cdv, reader, tagger."),
        (("evaluate", "xyz"), "'xyz'. Fix: use one of medquad, wikisection, notes,"),
        (("serch", "x"), "'serch'. Fix: use search or serve; `capr --help` lists the commands."),
        (("hello",), "'hello'. Fix: `capr --help` lists the commands."),
        (("search", "x", "y", "--patiant", "p01"), "No such option: --patiant. Fix: write `--filter patient=p01`."),
        (("search", "x", "y", "--patient", "p01"), "No such option: --patient. Fix: write `--filter patient=p01`."),
        (("search", "x", "y", "--type=two words"), "Fix: write `--filter 'type=two words'`."),
        (("search", "x", "y", "--filtr", "a=b"), "Fix: use --filter; `capr search --help` lists the options."),
        (("search", "x", "y", "--zzzz"), "Fix: leave it out; `capr search --help` lists the options."),
        (("--zzzz",), "No such option: --zzzz. Fix: leave it out; `capr --help` lists the options."),
        (("stats", "x", "y"), "Fix: `capr stats --help` lists the arguments."),
        (("search", "x", "y", "-k"), "Option '-k' requires an argument. Fix: write its value after it."),
        (("search", "x", "y", "--json=3"), "Option '--json' does not take a value. Fix: write the option alone."),
    ],
)
def test_usage_errors_have_a_fix(tmp_path, arguments, message):
    result = commands.run(tmp_path, *arguments, code=2)
    assert message in result.stderr
