"""The commands around a library."""

import json
import os
import subprocess
import sys

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


def test_indexing_again_changes_nothing(folder):
    printed = run("index", "library", "demo", folder=folder)
    assert "102 unchanged" in printed.stdout
    assert "capr encode library --encoder FOLDER" in printed.stderr


def test_hits_are_exact_and_complete(folder):
    texts = {document.id: document.text for document in capr.read(folder / "demo")}
    found = hits(folder, "--entity", "heart attack", "--aspect", "family history", "--filter", "patient=p01")
    assert found
    assert "MI" in [mention["text"] for hit in found for mention in hit["mentions"]]
    for hit in found:
        text = texts[hit["document"]]
        assert hit["text"] == text[hit["begin"] : hit["end"]]
        assert hit["metadata"]["patient"] == "p01"
        assert hit["stages"]["lexical"]["rank"] >= 1
        for sentence in hit["sentences"]:
            assert sentence["text"] == text[sentence["begin"] : sentence["end"]]
            assert 0 < sentence["score"] <= 1
        for begin, end in hit["highlights"]:
            assert hit["begin"] <= begin < end <= hit["end"]


def test_filters_and_contexts_narrow_the_hits(folder):
    every = hits(folder, "chest pain", "-k", "100")
    affirmed = hits(folder, "chest pain", "-k", "100", "--without", "negated")
    assert 0 < len(affirmed) < len(every)
    code = "MESH:D002637"
    for hit in affirmed:
        pains = [m for m in hit["mentions"] if m["concept"] and m["concept"]["code"] == code]
        assert any("negated" not in mention for mention in pains)
    (folder / "cohort.txt").write_text("p10\np30\n")
    assert {h["metadata"]["patient"] for h in hits(folder, "pain", "--filter", "patient=@cohort.txt")} == {"p10", "p30"}
    assert {h["aspect"] for h in hits(folder, "pain", "--filter", "section=HPI")} == {"history of present illness"}


def test_groups_have_one_hit_each(folder):
    found = hits(folder, "fever", "--group", "patient")
    assert len({hit["group"] for hit in found}) == len(found) > 5
    assert any(hit["others"] for hit in found)


def test_a_terminal_shows_place_evidence_and_explanation(folder):
    printed = run("search", "library", "vancomycin dose", "-k", "2", "--explain", "--neighbours", "1", folder=folder)
    assert "1. " in printed.stdout
    assert "[vancomycin]" in printed.stdout.lower()
    assert "lexical 1." in printed.stdout
    assert all(len(line) <= 80 for line in printed.stdout.splitlines())
    whole = run("search", "library", "vancomycin dose", "-k", "1", "--whole", folder=folder)
    assert "2 passages" in printed.stdout
    assert "1 passage " in whole.stdout


def test_documents_come_back_as_they_were(folder, tmp_path):
    run("export", "library", "-o", tmp_path / "out.jsonl", folder=folder)
    kept = list(capr.read(tmp_path / "out.jsonl"))
    assert len(kept) == 102
    assert kept == list(capr.read(folder / "demo"))
    again = run("export", "library", "-o", tmp_path / "out.jsonl", folder=folder, code=2)
    assert "is there already" in again.stderr
    lines = run("export", "library", "--filter", "patient=p10", folder=folder).stdout.splitlines()
    assert {json.loads(line)["metadata"]["patient"] for line in lines} == {"p10"}


def test_removing_verifying_and_counting(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "notes" / f"{name}.txt").write_text(f"PLAN: Aspirin for {name}.")
    run("index", "library", "notes", folder=tmp_path)
    assert "1 document removed" in run("remove", "library", "a.txt", folder=tmp_path).stdout
    assert "has no document 'a.txt'" in run("remove", "library", "a.txt", folder=tmp_path, code=1).stderr
    assert "Fix: name ids" in run("remove", "library", folder=tmp_path, code=2).stderr
    stats = json.loads(run("stats", "library", "--json", folder=tmp_path).stdout)
    assert (stats["documents"], stats["passages"], stats["encoder"]) == (2, 2, None)
    assert "documents" in run("stats", "library", folder=tmp_path).stdout
    assert "all is well" in run("verify", "library", folder=tmp_path).stdout
    assert "MB freed" in run("compact", "library", folder=tmp_path).stdout
    assert json.loads(run("verify", "library", "--json", folder=tmp_path).stdout)["documents"] == 2


def test_a_changed_document_needs_replace(tmp_path):
    (tmp_path / "a.txt").write_text("Aspirin.")
    run("index", "library", "a.txt", folder=tmp_path)
    (tmp_path / "a.txt").write_text("Warfarin.")
    refused = run("index", "library", "a.txt", folder=tmp_path, code=1)
    assert "with other contents" in refused.stderr
    assert "--replace" in refused.stderr
    assert "1 replaced" in run("index", "library", "a.txt", "--replace", folder=tmp_path).stdout
    assert hits(tmp_path, "warfarin")
    assert json.loads(run("search", "library", "aspirin", "--json", folder=tmp_path, code=1).stdout)["hits"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "nowhere", "pain"), "there is no library nowhere"),
        (("search", ".", "pain"), "is not a library"),
        (("search", "library"), "there is no query"),
        (("search", "library", "pain", "--entity", "x"), "there are a query and"),
        (("remove", "library", "a", "--filter", "patient=p1"), "ids and filters are given"),
        (("search", "library", "pain", "--filter", "patient"), "does not name a field"),
        (("search", "library", "pain", "--filter", "patient=@none.txt"), "none.txt"),
        (("search", "library", "pain", "--mode", "dense"), "capr encode library"),
        (("search", "library", "pain", "-k", "0"), "1 to 10,000"),
        (("search", "library", "pain", "--ranker", "nowhere"), "is no ranker"),
        (("encode", "library"), "there is no encoder to encode with"),
        (("encode", "library", "--encoder", "demo"), "is no encoder"),
        (("stats", "nowhere"), "there is no library nowhere"),
    ],
)
def test_mistakes_get_a_fact_and_a_fix(folder, arguments, said):
    result = run(*arguments, folder=folder, code=2)
    assert said in result.stderr
    assert "Fix:" in result.stderr
