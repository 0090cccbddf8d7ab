"""A process may be killed at any moment: committed documents survive, and no document is incomplete."""

import random
import signal
import time

import pytest

from capr.documents import CaprError

RESUMED = 4  # kills of one library, before the test starts another one
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
# Points that are also tried without checksums, as in a huge library.
UNCHECKED = ("before words 4", "after an array 3", "before rmtree 1")
SENTENCES = (
    ("before sentences", 1),
    ("after sentences", 8),
    ("before vectors", 2),
    ("half of an array", 9),
    ("after an array", 17),
    ("between vectors and state", 3),
)
LATER = {
    "before commit": 5,
    "after commit": 5,
    "before words": 4,
    "between words and state": 4,
    "after an array": 3,
    "between vectors and state": 4,
    "before rename": 6,
    "half of an array": 9,
    "after rmtree": 3,
}


def check(worker, path, possible, first="verify"):
    """Check that the library is intact; return the version of each document."""
    if not (path / "library.db").exists():
        assert all(None in versions for versions in possible.values()), "a library with documents is gone"
        with pytest.raises(CaprError, match="Fix"), worker.open_library(path) as library:
            library.search("cough")
        return {}
    with worker.open_library(path) as library:
        if first == "search":
            library.search("cough")
        verification = library.verify()
        assert verification.problems == []
        assert not [notice for notice in verification.notices if " yet; capr encode" not in notice]
        versions_by_id = {}
        for document in library.documents():
            version = document.metadata["version"]
            assert document == worker.make(document.id, version)
            versions_by_id[document.id] = version
        assert verification.documents == len(versions_by_id)
        for id in possible.keys() | versions_by_id.keys():
            assert versions_by_id.get(id) in possible.get(id, {None}), (
                f"{id}: {versions_by_id.get(id)}, not one of {possible.get(id)}"
            )
        for id, version in versions_by_id.items():
            hit = library.search(worker.marker(id, version, 0), 1, mode="lexical")[0]
            assert (hit.document, worker.torn(hit)) == (id, "")
        for id in list(versions_by_id)[:3]:
            results = library.search(worker.make(id, versions_by_id[id]).text, 3)
            assert not [fault for fault in map(worker.torn, results) if fault]
            if library.index.encoder() is not None:
                assert not [fault for fault in map(worker.torn, library.search("cough", mode="dense")) if fault]
    return versions_by_id


def test_committed_documents_survive_a_kill_at_any_moment(worker, starter, tmp_path, faults):
    generator = random.Random(20)
    measured = starter.start("change", path=tmp_path / "measured", changes=worker.plan(0), encoder="fake-a")
    begin = time.monotonic()
    measured.finish()
    duration = time.monotonic() - begin
    killed = acknowledged = 0
    default = worker.capr.index.embedded.views.MAX_CHECKED
    for number in range(faults):
        if number % RESUMED == 0:
            path = tmp_path / f"library-{number}"
            possible = {}
            encoder = generator.choice((None, "fake-a"))
            checked = generator.choice((None, 0))  # 0: opening checks no checksums, as in a huge library
            worker.capr.index.embedded.views.MAX_CHECKED = default if checked is None else checked
        changes = worker.plan(number + 1)
        options = {"encoder": encoder, "checked": checked, "discourse": number % (2 * RESUMED) < RESUMED}
        child = starter.start("change", path=path, changes=changes, **options)
        child.wait(generator.random() * duration * (0.2 if number % RESUMED == 0 else 1.0))
        killed += child.kill() == -signal.SIGKILL
        lines = child.lines
        assert not [line for line in lines if "crashed" in line], lines[-1]
        acknowledged += sum(len(line["kept"]) for line in lines if "kept" in line)
        versions_by_id = check(
            worker, path, worker.states(changes, lines, possible), generator.choice(("search", "verify"))
        )
        possible = {id: {version} for id, version in versions_by_id.items()}
    assert killed > faults / 2
    assert acknowledged


@pytest.fixture(autouse=True)
def _restore_max_checked(worker):
    """Restore the setting after each test."""
    before = worker.capr.index.embedded.views.MAX_CHECKED
    yield
    worker.capr.index.embedded.views.MAX_CHECKED = before


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
def test_a_library_works_after_a_kill_at(worker, starter, memory, faults, point, count, checked):
    if checked is not None and f"{point} {count}" not in UNCHECKED and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    if checked is not None:
        worker.capr.index.embedded.views.MAX_CHECKED = checked
    path = memory / "library"
    options = {"path": path, "encoder": "fake-a", "checked": checked}
    child = starter.start("change", changes=CHANGES, kill=[point, count], **options)
    assert child.wait() == -signal.SIGKILL, child.lines
    versions_by_id = check(worker, path, worker.states(CHANGES, child.lines, {}))
    lines = starter.start("change", changes=CHANGES[:3], **options).finish()
    possible = worker.states(CHANGES, lines, {id: {version} for id, version in versions_by_id.items()})
    assert all(len(versions) == 1 for versions in possible.values())
    check(worker, path, possible)


@pytest.mark.parametrize(("point", "count"), SENTENCES, ids=lambda value: str(value).replace(" ", "-"))
def test_a_library_with_sentence_vectors_works_after_a_kill_at(worker, starter, memory, point, count):
    path = memory / "library"
    options = {"path": path, "encoder": "fake-a", "discourse": True}
    child = starter.start("change", changes=CHANGES, kill=[point, count], **options)
    assert child.wait() == -signal.SIGKILL, child.lines
    versions_by_id = check(worker, path, worker.states(CHANGES, child.lines, {}))
    lines = starter.start("change", changes=CHANGES[:3], **options).finish()
    check(worker, path, worker.states(CHANGES, lines, {id: {version} for id, version in versions_by_id.items()}))
    with worker.open_library(path) as library:
        stats = library.stats()
        assert stats.passages_with_sentences == stats.passages
        assert not [fault for fault in map(worker.torn, library.search("cough", mode="cdv")) if fault]


@pytest.mark.parametrize("point", ["before words", "between words and state", "between vectors and state"])
def test_a_kill_of_a_reader_that_rebuilds_an_index_does_no_harm(worker, starter, copy, point):
    possible = {f"d{number}": {1} for number in range(12)}
    for name in ("words", "vectors", "sentences"):
        (copy / name / "state.json").write_text("{}")
    killed = starter.start("change", path=copy, changes=[["encode", "fake-a"]], kill=[point, 1])
    assert killed.wait() == -signal.SIGKILL, killed.lines
    check(worker, copy, possible, "search")
