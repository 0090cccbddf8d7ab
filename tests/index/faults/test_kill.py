"""A process may be killed at any moment: what it has acknowledged is there, and nothing is there by half."""

import random
import signal
import time

import pytest

from capr.documents import CaprError

RESUMED = 4  # times that a library is killed before another one begins
POINTS = (
    "in create",
    "before link",
    "after link",
    "before commit",
    "after commit",
    "before words are opened",
    "after words are opened",
    "before words",
    "between words and state",
    "after state of words",
    "before encoding",
    "before vectors",
    "half of an array",
    "after an array",
    "between vectors and state",
    "after state of vectors",
    "before rename",
    "after rename",
    "before vacuum",
    "after vacuum",
    "after checkpoint",
    "before rmtree",
    "after rmtree",
)
OFTEN = ("before words 4", "after an array 3", "before rmtree 1")  # points that are tried with huge libraries, too
SENTENCES = (("before sentences", 1), ("after sentences", 8), ("before vectors", 2), ("half of an array", 9),
             ("after an array", 17), ("between vectors and state", 3))  # fmt: skip
LATER = {"before commit": 5, "after commit": 5, "before words": 4, "between words and state": 4, "after an array": 3,
         "between vectors and state": 4, "before rename": 6, "half of an array": 9, "after rmtree": 3}  # fmt: skip


def check(worker, path, possible, first="verify"):
    """The library is whole: gives which version of each document is there."""
    if not (path / "library.db").exists():
        assert all(None in versions for versions in possible.values()), "a library with documents is gone"
        with pytest.raises(CaprError, match="Fix"), worker.opened(path) as library:
            library.search("cough")
        return {}
    with worker.opened(path) as library:
        if first == "search":
            library.search("cough")
        found = library.verify()
        assert found.problems == []
        assert not [notice for notice in found.notices if " yet; capr encode" not in notice]
        there = {}
        for document in library.documents():
            version = document.metadata["version"]
            assert document == worker.make(document.id, version)
            there[document.id] = version
        assert found.documents == len(there)
        for id in possible.keys() | there.keys():
            assert there.get(id) in possible.get(id, {None}), f"{id}: {there.get(id)}, not one of {possible.get(id)}"
        for id, version in there.items():
            hit = library.search(worker.marker(id, version, 0), 1, mode="lexical")[0]
            assert (hit.document, worker.torn(hit)) == (id, "")
        for id in list(there)[:3]:
            found = library.search(worker.make(id, there[id]).text, 3)
            assert not [told for told in map(worker.torn, found) if told]
            if library.index.encoder() is not None:
                assert not [told for told in map(worker.torn, library.search("cough", mode="dense")) if told]
    return there


def test_whatever_was_acknowledged_survives_a_kill_at_any_moment(worker, starter, tmp_path, faults):
    chosen = random.Random(20)
    measured = starter.start("change", path=tmp_path / "measured", changes=worker.plan(0), encoder="fake-a")
    begin = time.monotonic()
    measured.finished()
    duration = time.monotonic() - begin
    killed = acknowledged = 0
    usual = worker.capr.index.embedded.CHECKED
    for number in range(faults):
        if number % RESUMED == 0:
            path = tmp_path / f"library-{number}"
            possible = {}
            encoder = chosen.choice((None, "fake-a"))
            checked = chosen.choice((None, 0))  # 0: as if the library were too large to be checked when it is opened
            worker.capr.index.embedded.CHECKED = usual if checked is None else checked
        changes = worker.plan(number + 1)
        given = {"encoder": encoder, "checked": checked, "discourse": number % (2 * RESUMED) < RESUMED}
        child = starter.start("change", path=path, changes=changes, **given)
        child.wait(chosen.random() * duration * (0.2 if number % RESUMED == 0 else 1.0))
        killed += child.kill() == -signal.SIGKILL
        told = child.told
        assert not [line for line in told if "crashed" in line], told[-1]
        acknowledged += sum(len(line["kept"]) for line in told if "kept" in line)
        there = check(worker, path, worker.states(changes, told, possible), chosen.choice(("search", "verify")))
        possible = {id: {version} for id, version in there.items()}
    assert killed > faults / 2
    assert acknowledged


@pytest.fixture(autouse=True)
def _checked(worker):
    """Puts back what a test has set."""
    before = worker.capr.index.embedded.CHECKED
    yield
    worker.capr.index.embedded.CHECKED = before


CHANGES = [
    ["add", [[f"d{number}", 1] for number in range(6)]],
    ["add", [[f"d{number}", 2] for number in range(3, 7)]],
    ["remove", ["d1", "d2", "d6"]],
    ["encode", "fake-b"],
    ["compact", None],
    ["add", [[f"d{number}", 3] for number in range(2, 9, 3)]],
]


@pytest.mark.parametrize("checked", [None, 0], ids=["checked", "huge"])
@pytest.mark.parametrize(
    ("point", "count"),
    [*((point, 1) for point in POINTS), *LATER.items()],
    ids=lambda value: str(value).replace(" ", "-"),
)
def test_a_library_goes_on_after_a_kill_at(worker, starter, memory, faults, point, count, checked):
    if checked is not None and f"{point} {count}" not in OFTEN and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    if checked is not None:
        worker.capr.index.embedded.CHECKED = checked
    path = memory / "library"
    given = {"path": path, "encoder": "fake-a", "checked": checked}
    child = starter.start("change", changes=CHANGES, kill=[point, count], **given)
    assert child.wait() == -signal.SIGKILL, child.told
    there = check(worker, path, worker.states(CHANGES, child.told, {}))
    again = starter.start("change", changes=CHANGES[:3], **given)
    told = again.finished()
    possible = worker.states(CHANGES, told, {id: {version} for id, version in there.items()})
    assert all(len(versions) == 1 for versions in possible.values())
    check(worker, path, possible)


@pytest.mark.parametrize(("point", "count"), SENTENCES, ids=lambda value: str(value).replace(" ", "-"))
def test_a_library_with_vectors_of_sentences_goes_on_after_a_kill_at(worker, starter, memory, point, count):
    path = memory / "library"
    given = {"path": path, "encoder": "fake-a", "discourse": True}
    child = starter.start("change", changes=CHANGES, kill=[point, count], **given)
    assert child.wait() == -signal.SIGKILL, child.told
    there = check(worker, path, worker.states(CHANGES, child.told, {}))
    told = starter.start("change", changes=CHANGES[:3], **given).finished()
    check(worker, path, worker.states(CHANGES, told, {id: {version} for id, version in there.items()}))
    with worker.opened(path) as library:
        stats = library.stats()
        assert stats.passages_with_sentences == stats.passages
        assert not [told for told in map(worker.torn, library.search("cough", mode="cdv")) if told]


@pytest.mark.parametrize("point", ["before words", "between words and state", "between vectors and state"])
def test_a_process_that_only_searches_and_is_killed_while_it_mends_an_index_does_no_harm(worker, starter, copy, point):
    possible = {f"d{number}": {1} for number in range(12)}
    for name in ("words", "vectors", "sentences"):
        (copy / name / "state.json").write_text("{}")
    killed = starter.start("change", path=copy, changes=[["encode", "fake-a"]], kill=[point, 1])
    assert killed.wait() == -signal.SIGKILL, killed.told
    check(worker, copy, possible, "search")
