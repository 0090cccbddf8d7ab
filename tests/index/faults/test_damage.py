"""Files may be damaged or lost: what is derived is made again, and what is not says what is wrong and how to mend it."""

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import capr.index.embedded
from capr.documents import CaprError
from capr.search.library import Library

QUERIES = [
    ("aspirin after a heart attack", "hybrid"),
    ("dry cough", "lexical"),
    ('"left knee" -metformin', "lexical"),
    ("markd3v1p0", "lexical"),
    ("It speaks of a dry cough and fever.", "dense"),
    ("cough", "cdv"),
]


def rows(results):
    return [[hit.document, hit.passage.span.begin, hit.text] for hit in results]


@pytest.fixture(scope="module")
def right(worker, sound):
    """What the searches find where nothing is damaged."""
    with worker.opened(sound) as library:
        found = [rows(library.search(query, 5, mode=mode)) for query, mode in QUERIES]
    assert all(found)
    return found


def flipped(file, place):
    data = bytearray(file.read_bytes())
    data[int(place * (len(data) - 1))] ^= 0x10
    file.write_bytes(data)


DAMAGES = {
    "first-bit": lambda file: flipped(file, 0),
    "third-bit": lambda file: flipped(file, 1 / 3),
    "middle-bit": lambda file: flipped(file, 0.5),
    "late-bit": lambda file: flipped(file, 0.9),
    "last-bit": lambda file: flipped(file, 1),
    "emptied": lambda file: os.truncate(file, 0),
    "halved": lambda file: os.truncate(file, file.stat().st_size // 2),
    "without-its-last-byte": lambda file: os.truncate(file, file.stat().st_size - 1),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "deleted": lambda file: file.unlink(),
}
SOME = ("first-bit", "middle-bit", "emptied", "deleted")
FEWER = ("middle-bit", "deleted")


def derived(path):
    """The files of the derived indexes that hold something."""
    files = sorted(file for name in ("words", "vectors", "sentences") for file in (path / name).iterdir())
    return [file.relative_to(path) for file in files if file.stat().st_size]


def again(sound, path):
    """A sound copy of the derived indexes, and of the truth."""
    shutil.rmtree(path)
    shutil.copytree(sound, path)


def look(worker, path, right):
    """What is wrong with a library after it was damaged: nothing, if it heals itself."""
    wrong = []
    try:
        with worker.opened(path) as library:
            for (query, mode), expected in zip(QUERIES, right, strict=True):
                if rows(library.search(query, 5, mode=mode)) != expected:
                    wrong.append(f"{mode} {query!r} finds something else")
            check = library.verify()
            wrong += [*check.problems, *check.notices]
    except BaseException as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return wrong


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_derived_index_heals_itself_whichever_file_is_damaged(worker, sound, copy, right, warned, faults, damage):
    if damage not in SOME and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    wrong = {}
    for file in derived(copy):
        DAMAGES[damage](copy / file)
        if told := look(worker, copy, right):
            wrong[str(file)] = told
        again(sound, copy)
    assert wrong == {}
    assert [message for message in warned if "is damaged" in message]


@pytest.mark.parametrize("name", ["words", "vectors", "sentences"])
def test_a_damaged_index_is_told_of_and_made_again(worker, copy, right, warned, name):
    file = max((copy / name).iterdir(), key=lambda file: file.stat().st_size)
    flipped(file, 0.5)
    assert look(worker, copy, right) == []
    assert [message for message in warned if str(copy / name) in message and "made again" in message]
    warned.clear()
    assert look(worker, copy, right) == []
    assert warned == []


@pytest.mark.parametrize(
    "names", [("words",), ("vectors",), ("sentences",), ("words", "vectors", "sentences")], ids="-".join
)
def test_derived_indexes_that_were_deleted_are_made_again(worker, copy, right, names):
    for name in names:
        shutil.rmtree(copy / name)
    assert look(worker, copy, right) == []


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
def test_a_state_that_is_something_else_is_made_again(worker, copy, right, name, text):
    (copy / name / "state.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert look(worker, copy, right) == []


def test_a_state_that_promises_more_or_less_than_there_is_is_made_again(worker, copy, right):
    file = copy / "vectors" / "state.json"
    state = json.loads(file.read_text())
    for name, value in (("rows", state["rows"] - 1), ("rows", state["rows"] + 1), ("through", 0), ("through", 10**9),
                        ("dimensions", 8), ("encoder", "other"), ("epoch", 1), ("sums", {}), ("sums", [])):  # fmt: skip
        file.write_text(json.dumps({**state, name: value}))
        assert look(worker, copy, right) == [], (name, value)
        state = json.loads(file.read_text())


def test_a_folder_in_the_place_of_a_file_is_made_again(worker, sound, copy, right):
    for name in ("words/state.json", "words/meta.json", "vectors/state.json"):
        (copy / name).unlink()
        (copy / name).mkdir()
        assert look(worker, copy, right) == [], name
        again(sound, copy)


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_a_file_in_the_place_of_an_index_crashes_nothing(starter, copy, name):
    shutil.rmtree(copy / name)
    (copy / name).write_text("a file")
    for line in ends(starter, copy, calls=CALLS[:4]):
        assert line.get("outcome") is not None or "Fix: " in line["refused"], line


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_index_too_large_to_be_checked_never_gives_a_wrong_text_and_is_mended_by_verify(
    worker, starter, sound, copy, right, faults, damage
):
    if damage not in FEWER and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    texts = {f"d{number}": worker.make(f"d{number}", 1).text for number in range(12)}
    wrong = {}
    for file in derived(copy):
        DAMAGES[damage](copy / file)
        child = starter.start("search", path=copy, queries=QUERIES, checked=0)
        code = child.wait()
        told = child.told
        if code:
            wrong[str(file)] = f"ended with {code}", *(line["crashed"][-700:] for line in told if "crashed" in line)
        hits = [hit for line in told for hit in line.get("hits", [])]
        if bad := [hit for hit in hits if not texts[hit[0]].startswith(hit[2], hit[1])]:
            wrong[f"{file} gives"] = bad
        if not code:
            repaired = next(line["repaired"] for line in told if "repaired" in line)
            found = [line["again"] for line in told if "again" in line]
            if repaired or found != right:
                wrong[f"{file} is mended to"] = repaired, found
        again(sound, copy)
    assert wrong == {}


@pytest.mark.parametrize("place", [0, 0.3, 0.5, 1])
def test_a_bit_of_a_sentence_that_has_turned_is_found_dropped_and_made_again(worker, copy, right, place):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        code = bytearray(database.execute("SELECT code FROM sentence WHERE passage = 3").fetchone()[0])
        code[int(place * (len(code) - 1))] ^= 0x10
        database.execute("UPDATE sentence SET code = ? WHERE passage = 3", (bytes(code),))
    with worker.opened(copy) as library:
        (problem,) = library.verify().problems
        assert "the sentences of a passage are not what was kept (passage 3)" in problem
        with pytest.raises(CaprError, match=r"library\.db is damaged.*Fix: "):
            library.scores("cough", library.index.passages([3])[3].entry.passage.document)
        check = library.verify(repair=True)
        assert (check.problems, check.repaired) == ([], ["vectors of sentences"])
        assert [notice for notice in check.notices if "1 passages have no vectors of sentences yet" in notice]
        assert library.encode(discourse=worker.FakeDiscourse()) >= 1
    assert look(worker, copy, right) == []


def test_sentences_of_another_passage_are_found_dropped_and_made_again(worker, copy, right):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        query = "SELECT p.number FROM passage p JOIN passage q ON q.number = p.number + 1 AND q.document = p.document"
        (first,) = database.execute(query).fetchone()
        query = "SELECT code FROM sentence WHERE passage IN (?, ?) ORDER BY passage"
        codes = [code for (code,) in database.execute(query, (first, first + 1))]
        exchanged = [(codes[1], first), (codes[0], first + 1)]
        database.executemany("UPDATE sentence SET code = ? WHERE passage = ?", exchanged)
    shutil.rmtree(copy / "sentences")
    with worker.opened(copy) as library:
        problems = library.verify().problems
        for problem, number in zip(problems, (first, first + 1), strict=True):
            assert f"a sentence with a vector lies outside of its passage (passage {number}). Fix: " in problem
        assert library.verify(repair=True).problems == []
        assert library.encode(discourse=worker.FakeDiscourse()) == 2
    assert look(worker, copy, right) == []


@pytest.mark.parametrize(
    ("key", "told"),
    [("discourse", "vectors of sentences .*--discourse FOLDER"), ("encoder", "vectors of passages .*--encoder FOLDER")],
)
def test_vectors_of_a_model_that_nobody_remembers_are_told_of(worker, copy, right, key, told):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        database.execute("DELETE FROM meta WHERE key = ?", (key,))
    with Library(copy, encoder="none", discourse="none") as library:
        (problem,) = library.verify().problems
        assert re.search(told, problem)
        (left,) = library.verify(repair=True).problems
        assert left == problem
    with Library(copy, encoder="none", discourse="none") as library:
        library.encode(**{key: worker.Fake() if key == "encoder" else worker.FakeDiscourse()})
        assert library.verify().problems == []


@pytest.mark.parametrize("code", [b"", b"12", bytes(40)])
@pytest.mark.parametrize("lost", [False, True])
def test_a_vector_of_a_wrong_length_is_dropped_and_made_again(worker, copy, right, code, lost):
    with closing(sqlite3.connect(copy / "library.db")) as database, database:
        database.execute("UPDATE vector SET code = ? WHERE passage = 3", (code,))
    if lost:
        shutil.rmtree(copy / "vectors")
    with worker.opened(copy) as library:
        assert "a vector has the length 0.00 and not 1 (passage 3). Fix: " in library.verify().problems[0]
        check = library.verify(repair=True)
        assert (check.problems, check.repaired[-1]) == ([], "vectors of passages")
        assert library.encode(library.models.encoder(library.index)) == 1
    assert look(worker, copy, right) == []


def test_the_model_is_looked_up_once_for_many_vectors(worker, copy, monkeypatch):
    with worker.opened(copy) as library:
        store, asked = library.index.store, []
        known = store.encoder
        monkeypatch.setattr(store, "encoder", lambda *given: asked.append(given) or known(*given))
        numbers = list(range(1, 21))
        assert len(store.sentences(numbers)) == 20
        assert len(asked) == 1
        assert len(store.codes_since(capr.index.Grain.SENTENCES, 0, 20)) == 20
        assert len(asked) == 2
        found = store.sentences(numbers)
        asked.clear()
        with store.changing():
            store.set_sentences(found)
        assert len(asked) == 1


@pytest.mark.parametrize("name", ["words", "vectors", "sentences"])
def test_verify_finds_damage_that_opening_does_not_look_for_and_repairs_it(worker, copy, right, monkeypatch, name):
    monkeypatch.setattr(capr.index.embedded, "CHECKED", 0)
    kinds = {"words": "*.store", "vectors": "codes-*", "sentences": "codes-*"}
    flipped(next((copy / name).glob(kinds[name])), 0.5)
    with worker.opened(copy) as library:
        problems = library.verify().problems
        assert problems
        assert all("Fix: run capr verify --repair" in problem for problem in problems)
        check = library.verify(repair=True)
        assert (check.problems, check.repaired) == ([], [name])
        assert library.verify().problems == []
    assert look(worker, copy, right) == []


# --- the truth ---

CALLS = [("search", "cough"), ("stats",), ("verify",), ("add", ["new", 1]), ("document", "d1"), ("remove", "d1"),
         ("compact",)]  # fmt: skip


def ends(starter, path, user=None, calls=CALLS):
    """How calls end: none hangs, none crashes."""
    told = starter.start("attempt", path=path, calls=calls, user=user).finished(timeout=60)
    crashed = {line["call"]: line["crashed"].strip().splitlines()[-1] for line in told if "crashed" in line}
    assert crashed == {}
    assert len(told) == len(calls)
    return told


@pytest.mark.parametrize("length", ["0", "1", "100", "a page", "half", "all but a page"])
def test_a_truncated_database_is_named_with_what_to_do(starter, copy, length):
    file = copy / "library.db"
    size = file.stat().st_size
    wanted = {"a page": 8192, "half": size // 2, "all but a page": size - 8192}
    os.truncate(file, wanted[length] if length in wanted else int(length))
    for line in ends(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


def test_a_database_without_its_last_bytes_is_told_of(starter, copy):
    for count in (1, 100, 4000):
        os.truncate(copy / "library.db", (copy / "library.db").stat().st_size - count)
        for line in ends(starter, copy, calls=CALLS[:3]):
            assert line["call"] != "verify" or line.get("outcome") or "Fix: " in line.get("refused", ""), line


@pytest.mark.parametrize("garbage", [b"garbage!" * 12, bytes(100), b"\xff" * 16, b"SQLite format 3\x00" + b"\xff" * 84])
def test_a_database_with_another_header_is_named_with_what_to_do(starter, copy, garbage):
    file = copy / "library.db"
    file.write_bytes(garbage + file.read_bytes()[len(garbage) :])
    for line in ends(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


def test_a_file_that_is_no_database_is_named_with_what_to_do(starter, copy):
    (copy / "library.db").write_text("These are my notes, and not a database.\n" * 1000)
    for line in ends(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


def test_a_database_of_another_program_is_named_with_what_to_do(worker, starter, copy):
    (copy / "library.db").unlink()
    database = worker.sqlite3.connect(copy / "library.db")
    database.execute("CREATE TABLE other (value)")
    database.close()
    for line in ends(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


@pytest.mark.parametrize("how", ["random", "zeros", "bit"])
def test_damaged_pages_of_the_database_are_told_of_and_crash_nothing(worker, starter, sound, copy, faults, how):
    file = copy / "library.db"
    pages = file.stat().st_size // 8192
    chosen = np.random.default_rng(7)
    texts = {worker.make(f"d{number}", 1).text for number in range(12)}
    crashed, silent, wrong = {}, [], []
    for page in range(1, pages) if faults >= 100 else range(1, pages, 2):
        data = bytearray(file.read_bytes())
        if how == "bit":
            for place in chosen.integers(0, 8192, 20):
                data[page * 8192 + int(place)] ^= 1 << int(chosen.integers(0, 8))
        else:
            new = bytes(8192) if how == "zeros" else chosen.bytes(8192)
            data[page * 8192 : (page + 1) * 8192] = new
        file.write_bytes(data)
        told = starter.start("attempt", path=copy, calls=CALLS[:3]).finished(timeout=60)
        for line in told:
            if "crashed" in line:
                crashed[f"page {page}, {line['call']}"] = line["crashed"].strip().splitlines()[-1]
            elif line["call"] == "verify" and line.get("outcome") == [] and how != "bit":
                silent.append(page)
            elif line["call"] == "search" and how != "bit":
                hits = line.get("outcome", [])
                wrong += [text for _, text in hits if not any(text in whole for whole in texts)]
        again(sound, copy)
    assert crashed == {}
    assert wrong == []
    with worker.opened(copy) as library:  # an empty page that nobody uses may be anything
        (free,) = library.index.store.database.execute("PRAGMA freelist_count").fetchone()
    assert len(silent) <= free


def test_a_log_of_changes_that_is_damaged_loses_only_changes_that_were_not_finished(worker, starter, memory):
    path = memory / "library"
    child = starter.start(
        "change", path=path, changes=[["add", [[f"d{n}", 1] for n in range(9)]]], kill=["after commit", 3]
    )
    child.wait()
    log = path / "library.db-wal"
    assert log.stat().st_size
    for damage in ("last-bit", "middle-bit", "first-bit"):
        DAMAGES[damage](log)
        for line in ends(starter, path, calls=[("search", "cough"), ("verify",)]):
            assert line.get("outcome") is not None or "Fix: " in line["refused"]
        if not log.exists():
            break


# --- folders ---


@pytest.mark.parametrize("call", ["search", "stats", "verify", "document", "remove", "encode", "compact"])
@pytest.mark.parametrize("what", ["missing", "a file", "an empty folder", "another folder", "a folder as database"])
def test_a_path_that_is_no_library_is_named_with_what_to_do(worker, tmp_path, what, call):
    path = tmp_path / "library"
    if what == "a file":
        path.write_text("text")
    elif what != "missing":
        path.mkdir()
    if what == "another folder":
        (path / "notes.txt").write_text("text")
    if what == "a folder as database":
        (path / "library.db").mkdir()
    given = {"search": ["cough"], "document": ["d1"], "remove": ["d1"], "encode": [worker.Fake()]}.get(call, [])
    with pytest.raises(CaprError, match=r"Fix: "), worker.opened(path) as library:
        getattr(library, call)(*given)
    assert what != "missing" or not path.exists()


@pytest.mark.parametrize("what", ["a file", "below a file", "a folder as database", "a dangling link"])
def test_a_library_cannot_be_made_where_something_else_is(worker, tmp_path, what):
    path = tmp_path / "library"
    if what == "a dangling link":
        path.symlink_to(tmp_path / "nowhere" / "deep")
    elif what == "a folder as database":
        (path / "library.db").mkdir(parents=True)
    else:
        path.write_text("text")
        path = path / "below" if what == "below a file" else path
    with pytest.raises(CaprError, match=r"Fix: "), worker.opened(path) as library:
        library.add(worker.make("d1", 1))


# --- rights ---


def read_only(path):
    """Takes from everybody the right to write; gives the user as whom to try it."""
    for file in path.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    path.chmod(0o555)
    return 65534 if os.getuid() == 0 else None


def test_a_read_only_library_can_be_searched_but_not_changed(worker, starter, sound, open_folder, right):
    path = Path(shutil.copytree(sound, open_folder / "library"))
    user = read_only(path)
    calls = [("search", "markd3v1p0"), ("stats",), ("verify",), ("document", "d1"), ("add", ["new", 1]),
             ("remove", "d1"), ("compact",)]  # fmt: skip
    told = {line["call"]: line for line in ends(starter, path, user, calls)}
    assert told["search"]["outcome"][0][0] == "d3"
    assert told["verify"]["outcome"] == []
    assert "outcome" in told["stats"]
    assert "outcome" in told["document"]
    for name in ("add", "remove", "compact"):
        assert "Fix: " in told[name].get("refused", ""), told[name]


def test_a_read_only_library_whose_writer_was_killed_can_be_searched(worker, starter, open_folder):
    path = open_folder / "library"
    changes = [["add", [[f"d{number}", 1] for number in range(6)]]]
    child = starter.start("change", path=path, changes=changes, encoder="fake-a", kill=["after words", 3])
    child.wait()
    kept = [id for line in child.told for id in line.get("kept", [])]
    assert kept
    assert (path / "library.db-wal").stat().st_size
    user = read_only(path)
    calls = [("search", worker.marker(kept[0], 1, 0)), ("document", kept[0]), ("verify",), ("add", ["new", 1])]
    told = {line["call"]: line for line in ends(starter, path, user, calls)}
    assert told["search"]["outcome"][0][0] == kept[0]
    assert "outcome" in told["document"]
    assert told["verify"]["outcome"] == []
    assert "Fix: " in told["add"].get("refused", ""), told["add"]


def test_a_read_only_library_with_a_log_of_changes_but_no_shared_memory_answers_or_says_why(
    worker, starter, open_folder
):
    path = open_folder / "library"
    changes = [["add", [[f"d{number}", 1] for number in range(6)]]]
    starter.start("change", path=path, changes=changes, kill=["after words", 2]).wait()
    (path / "library.db-shm").unlink()
    user = read_only(path)
    for line in ends(starter, path, user):
        assert line.get("outcome") or "Fix: " in line.get("refused", ""), line


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_a_read_only_library_with_a_damaged_index_answers_or_says_why(starter, sound, open_folder, name):
    path = Path(shutil.copytree(sound, open_folder / "library"))
    file = max((path / name).iterdir(), key=lambda file: file.stat().st_size)
    flipped(file, 0.5)
    user = read_only(path)
    calls = [("search", "cough"), ("verify",), ("add", ["new", 1])]
    told = {line["call"]: line for line in ends(starter, path, user, calls)}
    assert told["search"].get("outcome") or "Fix: " in told["search"]["refused"]
    assert "outcome" in told["verify"] or "Fix: " in told["verify"]["refused"]
    assert "Fix: " in told["add"].get("refused", "")


def test_a_library_that_may_not_be_read_says_so(starter, sound, open_folder):
    path = Path(shutil.copytree(sound, open_folder / "library"))
    for file in path.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    path.chmod(0o700)
    user = 65534 if os.getuid() == 0 else None
    if user is None:
        path.chmod(0)
    for line in ends(starter, path, user):
        assert "Fix: " in line.get("refused", ""), line


def test_a_library_of_which_one_file_may_not_be_read_answers_or_says_why(starter, sound, open_folder):
    if os.getuid():
        pytest.skip("only root can try it as another user")
    for name in ("library.db", "words/state.json", "words/meta.json", "vectors/state.json"):
        path = Path(shutil.copytree(sound, open_folder / name.replace("/", "-")))
        user = read_only(path)
        (path / name).chmod(0)
        for line in ends(starter, path, user, CALLS[:5]):
            assert line.get("outcome") is not None or "Fix: " in line.get("refused", ""), (name, line)


# --- models ---


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder with an encoder that knows a few words."""
    onnx = pytest.importorskip("onnx")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("encoder")
    words = {word: number for number, word in enumerate(["?", "cough", "fever", "aspirin", "heart", "knee", "of", "a"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    helper, kinds = onnx.helper, onnx.TensorProto
    table = np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["states"])],
        "encoder",
        [helper.make_tensor_value_info("input_ids", kinds.INT64, ["texts", "pieces"])],
        [helper.make_tensor_value_info("states", kinds.FLOAT, ["texts", "pieces", 8])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    manifest = {"name": "tiny", "kind": "encoder", "dimensions": 8, "pooling": "mean"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def with_model(worker, encoder, tmp_path):
    """A library and the folder of its encoder."""
    folder = Path(shutil.copytree(encoder, tmp_path / "encoder"))
    with Library(tmp_path / "library", encoder=folder) as library:
        library.add([worker.make(f"d{number}", 1) for number in range(6)])
    with Library(tmp_path / "library") as library:
        assert library.search("cough").mode == "hybrid"
        assert library.search("cough", mode="dense").hits
    return tmp_path / "library", folder


LOSSES = {
    "folder": shutil.rmtree,
    **{name: lambda folder, name=name: (folder / name).unlink() for name in ("model.onnx", "manifest.json")},
    "tokenizer.json": lambda folder: (folder / "tokenizer.json").unlink(),
    "empty model": lambda folder: os.truncate(folder / "model.onnx", 0),
    "half of the model": lambda folder: os.truncate(folder / "model.onnx", 100),
    "garbage as model": lambda folder: (folder / "model.onnx").write_bytes(b"garbage" * 100),
    "garbage as tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{}"),
    "garbage as manifest": lambda folder: (folder / "manifest.json").write_text("[]"),
    "bytes as manifest": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe\xff"),
    "other dimensions": lambda folder: (folder / "manifest.json").write_text('{"name": "x", "dimensions": 9}'),
    "another name": lambda folder: (folder / "manifest.json").write_text('{"name": "x", "dimensions": 8}'),
    "a bit of the model": lambda folder: flipped(folder / "model.onnx", 0.6),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_without_its_encoder_a_library_is_searched_by_words_and_says_why(worker, with_model, loss):
    path, folder = with_model
    LOSSES[loss](folder)
    with Library(path) as library:
        found = library.search("cough")
        assert found.mode == "lexical"
        assert found.hits
        assert any("Fix: " in notice for notice in found.notices)
        with pytest.raises(CaprError, match=r"Fix: "):
            library.search("cough", mode="dense")
        with pytest.raises(CaprError, match=r"Fix: "):
            library.add(worker.make("new", 1))
        assert library.verify().problems == []
        assert library.stats().documents == 6
