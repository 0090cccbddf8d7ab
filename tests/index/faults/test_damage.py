"""Damaged files of derived indexes are rebuilt from the documents, or never give a wrong result."""

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest
from damages import CALLS, DAMAGES, QUERIES, flip_bit, restore, rows, run_calls

import capr.index.embedded.views
from capr.documents import CaprError
from capr.search.library import Library

ALWAYS = ("first-bit", "middle-bit", "emptied", "deleted")
ALWAYS_UNCHECKED = ("middle-bit", "deleted")


def derived(path):
    """Return the files of the derived indexes that are not empty."""
    files = sorted(file for name in ("words", "vectors", "sentences") for file in (path / name).iterdir())
    return [file.relative_to(path) for file in files if file.stat().st_size]


def faults_of(worker, path, expected):
    """Return the problems of a damaged library; none if it repairs itself."""
    problems = []
    try:
        with worker.open_library(path) as library:
            for (query, mode), hits in zip(QUERIES, expected, strict=True):
                if rows(library.search(query, 5, mode=mode)) != hits:
                    problems.append(f"{mode} {query!r} finds something else")
            check = library.verify()
            problems += [*check.problems, *check.notices]
    except BaseException as error:
        problems.append(f"{type(error).__name__}: {error}")
    return problems


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_derived_index_repairs_itself_if_any_file_is_damaged(worker, sound, copy, expected, warnings, faults, damage):
    if damage not in ALWAYS and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    wrong = {}
    for file in derived(copy):
        DAMAGES[damage](copy / file)
        if problems := faults_of(worker, copy, expected):
            wrong[str(file)] = problems
        restore(sound, copy)
    assert wrong == {}
    assert [message for message in warnings if "is damaged" in message]


@pytest.mark.parametrize("name", ["words", "vectors", "sentences"])
def test_a_damaged_index_is_logged_and_rebuilt(worker, copy, expected, warnings, name):
    file = max((copy / name).iterdir(), key=lambda file: file.stat().st_size)
    flip_bit(file, 0.5)
    assert faults_of(worker, copy, expected) == []
    assert [message for message in warnings if str(copy / name) in message and "capr rebuilds it" in message]
    warnings.clear()
    assert faults_of(worker, copy, expected) == []
    assert warnings == []


@pytest.mark.parametrize(
    "names", [("words",), ("vectors",), ("sentences",), ("words", "vectors", "sentences")], ids="-".join
)
def test_deleted_derived_indexes_are_rebuilt(worker, copy, expected, names):
    for name in names:
        shutil.rmtree(copy / name)
    assert faults_of(worker, copy, expected) == []


# One text for each line would take a page.
@pytest.mark.parametrize("name", ["words", "vectors"])
@pytest.mark.parametrize(
    "text",
    ["", "garbage", "{", "null", "[]", "0", '"format"', "{}", '{"format": 1}', '{"format": 2}', '{"format": null}',
     '{"format": 1, "through": null, "removed": null}', '{"format": 1, "through": "x", "removed": 0}',
     '{"format": 1, "through": [], "removed": {}}', '{"format": 1, "through": 1, "removed": 0}',
     '{"format": 1, "through": 1000000, "removed": 0}', '{"format": 1, "through": -5, "removed": -5}',
     '{"format": 1, "rows": -1}', '{"format": 1, "rows": 1e99}', '{"rows": 1000000, "dimensions": 1000000}',
     '{"encoder": 5, "dimensions": 5.5, "rows": 2, "sums": 7, "epoch": {}}', '{"rows": true, "sums": null}',
     "\ud800", "[" * 100_000],
    ids=lambda text: ascii(text[:40]),
)  # fmt: skip
def test_an_index_with_an_invalid_state_is_rebuilt(worker, copy, expected, name, text):
    (copy / name / "state.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert faults_of(worker, copy, expected) == []


def test_an_index_whose_state_disagrees_with_its_files_is_rebuilt(worker, copy, expected):
    file = copy / "vectors" / "state.json"
    state = json.loads(file.read_text())
    for name, value in (
        ("rows", state["rows"] - 1),
        ("rows", state["rows"] + 1),
        ("through", 0),
        ("through", 10**9),
        ("dimensions", 8),
        ("encoder", "other"),
        ("epoch", 1),
        ("sums", {}),
        ("sums", []),
    ):
        file.write_text(json.dumps({**state, name: value}))
        assert faults_of(worker, copy, expected) == [], (name, value)
        state = json.loads(file.read_text())


def test_a_folder_instead_of_a_file_is_replaced(worker, sound, copy, expected):
    for name in ("words/state.json", "words/meta.json", "vectors/state.json"):
        (copy / name).unlink()
        (copy / name).mkdir()
        assert faults_of(worker, copy, expected) == [], name
        restore(sound, copy)


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_a_file_instead_of_an_index_crashes_nothing(starter, copy, name):
    shutil.rmtree(copy / name)
    (copy / name).write_text("a file")
    for line in run_calls(starter, copy, calls=CALLS[:4]):
        assert line.get("outcome") is not None or "Fix: " in line["refused"], line


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_unchecked_index_never_gives_a_wrong_text_and_verify_repairs_it(
    worker, starter, sound, copy, expected, faults, damage
):
    if damage not in ALWAYS_UNCHECKED and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    texts = {f"d{number}": worker.make(f"d{number}", 1).text for number in range(12)}
    wrong = {}
    for file in derived(copy):
        DAMAGES[damage](copy / file)
        child = starter.start("search", path=copy, queries=QUERIES, checked=0)
        code = child.wait()
        lines = child.lines
        if code:
            wrong[str(file)] = f"ended with {code}", *(line["crashed"][-700:] for line in lines if "crashed" in line)
        hits = [hit for line in lines for hit in line.get("hits", [])]
        if bad := [hit for hit in hits if not texts[hit[0]].startswith(hit[2], hit[1])]:
            wrong[f"{file} gives"] = bad
        if not code:
            repaired = next(line["repaired"] for line in lines if "repaired" in line)
            again = [line["again"] for line in lines if "again" in line]
            if repaired or again != expected:
                wrong[f"{file} is repaired to"] = repaired, again
        restore(sound, copy)
    assert wrong == {}


@pytest.mark.parametrize("share", [0, 0.3, 0.5, 1])
def test_verify_drops_sentences_with_a_flipped_bit_and_encode_makes_them_again(worker, copy, expected, share):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        code = bytearray(database.execute("SELECT code FROM sentence WHERE passage = 3").fetchone()[0])
        code[int(share * (len(code) - 1))] ^= 0x10
        database.execute("UPDATE sentence SET code = ? WHERE passage = 3", (bytes(code),))
    with worker.open_library(copy) as library:
        (problem,) = library.verify().problems
        assert "the vectors of a passage differ from what was written (passage 3)" in problem
        with pytest.raises(CaprError, match=r"library\.db is damaged.*Fix: "):
            library.scores("cough", library.index.store.keys([3])[3].document)
        check = library.verify(repair=True)
        assert (check.problems, check.repaired) == ([], ["vectors of sentences"])
        assert [notice for notice in check.notices if "there are no vectors of sentences for 1 passage yet;" in notice]
        assert library.encode(discourse=worker.FakeDiscourse()) >= 1
    assert faults_of(worker, copy, expected) == []


def test_verify_drops_sentences_of_another_passage_and_encode_makes_them_again(worker, copy, expected):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        query = "SELECT p.number FROM passage p JOIN passage q ON q.number = p.number + 1 AND q.document = p.document"
        (first,) = database.execute(query).fetchone()
        query = "SELECT code FROM sentence WHERE passage IN (?, ?) ORDER BY passage"
        codes = [code for (code,) in database.execute(query, (first, first + 1))]
        exchanged = [(codes[1], first), (codes[0], first + 1)]
        database.executemany("UPDATE sentence SET code = ? WHERE passage = ?", exchanged)
    shutil.rmtree(copy / "sentences")
    with worker.open_library(copy) as library:
        problems = library.verify().problems
        for problem, number in zip(problems, (first, first + 1), strict=True):
            assert f"a sentence with a vector lies outside its passage (passage {number}). Fix: " in problem
        assert library.verify(repair=True).problems == []
        assert library.encode(discourse=worker.FakeDiscourse()) == 2
    assert faults_of(worker, copy, expected) == []


@pytest.mark.parametrize(
    ("key", "pattern"),
    [("discourse", "vectors of sentences .*--discourse FOLDER"), ("encoder", "vectors of passages .*--encoder FOLDER")],
)
def test_verify_reports_vectors_of_an_unknown_model(worker, copy, expected, key, pattern):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        database.execute("DELETE FROM meta WHERE key = ?", (key,))
    with Library(copy, encoder="none", discourse="none") as library:
        (problem,) = library.verify().problems
        assert re.search(pattern, problem)
        (remaining,) = library.verify(repair=True).problems
        assert remaining == problem
    with Library(copy, encoder="none", discourse="none") as library:
        library.encode(**{key: worker.FakeEncoder() if key == "encoder" else worker.FakeDiscourse()})
        assert library.verify().problems == []


@pytest.mark.parametrize("code", [b"", b"12", bytes(40)])
@pytest.mark.parametrize("lost", [False, True])
def test_verify_drops_a_vector_of_a_wrong_length_and_encode_makes_it_again(worker, copy, expected, code, lost):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        database.execute("UPDATE vector SET code = ? WHERE passage = 3", (code,))
    if lost:
        shutil.rmtree(copy / "vectors")
    with worker.open_library(copy) as library:
        assert "a vector has the length 0.00 instead of 1 (passage 3). Fix: " in library.verify().problems[0]
        check = library.verify(repair=True)
        assert (check.problems, check.repaired[-1]) == ([], "vectors of passages")
        assert library.encode(library.models.encoder(library.index)) == 1
    assert faults_of(worker, copy, expected) == []


def test_the_model_is_looked_up_once_for_many_vectors(worker, copy, monkeypatch):
    with worker.open_library(copy) as library:
        store, calls = library.index.store, []
        original = store.encoder
        monkeypatch.setattr(store, "encoder", lambda *arguments: calls.append(arguments) or original(*arguments))
        numbers = list(range(1, 21))
        assert len(store.span_vectors(numbers, capr.index.SENTENCES)) == 20
        assert len(calls) == 1
        assert len(store.codes_since(capr.index.SENTENCES, 0, 20)) == 20
        assert len(calls) == 2
        vectors = store.span_vectors(numbers, capr.index.SENTENCES)
        calls.clear()
        with store.changing():
            store.set_vectors(vectors, capr.index.SENTENCES)
        assert len(calls) == 1


@pytest.mark.parametrize("name", ["words", "vectors", "sentences"])
def test_verify_finds_and_repairs_damage_that_opening_does_not_check(worker, copy, expected, monkeypatch, name):
    monkeypatch.setattr(capr.index.embedded.views, "MAX_CHECKED", 0)
    kinds = {"words": "*.store", "vectors": "codes-*", "sentences": "codes-*"}
    flip_bit(next((copy / name).glob(kinds[name])), 0.5)
    with worker.open_library(copy) as library:
        problems = library.verify().problems
        assert problems
        assert all("Fix: run capr verify --repair" in problem for problem in problems)
        check = library.verify(repair=True)
        assert (check.problems, check.repaired) == ([], [name])
        assert library.verify().problems == []
    assert faults_of(worker, copy, expected) == []
