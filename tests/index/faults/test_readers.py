"""Any number of processes search while one writes: none fails, and none sees a mixture of two versions."""

import json
import time

import pytest

from capr.documents import CaprError


def together(worker, starter, path, faults, compacting):
    """Readers beside a writer; what each has told."""
    readers, seconds = (20, 60) if faults >= 100 else (4, 3 if compacting else 5)
    with worker.opened(path, worker.Fake(), worker.FakeDiscourse()) as library:
        library.add([worker.make(f"d{number}", 0) for number in range(12)])
    stop, over = path.parent / "stop", path.parent / "over"
    writer = starter.start("write", path=path, rounds=10**9, stop=stop, compacting=compacting)
    reading = [starter.start("read", path=path, stop=over, seed=seed) for seed in range(readers)]
    time.sleep(seconds)
    stop.write_text("")
    (written,) = writer.finished(timeout=300)
    part = over.with_suffix(".part")
    part.write_text(json.dumps(written["version"]))
    part.replace(over)
    told = [reader.finished(timeout=300) for reader in reading]
    return written, told


def check(worker, path, written, told):
    assert written["version"] > 1
    assert written["warned"] == []
    assert [line for lines in told for line in lines if "torn" in line] == []
    for lines in told:
        last = lines[-1]
        assert last["warned"] == []
        assert last["searches"]
        assert last["hits"]
        assert last["last"], "what was added last was never found"
    with worker.opened(path) as library:
        assert library.verify().problems == []


def test_readers_beside_a_writer_see_whole_documents_and_soon_the_new_ones(worker, starter, tmp_path, faults):
    written, told = together(worker, starter, tmp_path / "library", faults, compacting=False)
    check(worker, tmp_path / "library", written, told)


def test_readers_go_on_while_a_library_is_compacted(worker, starter, tmp_path, faults):
    written, told = together(worker, starter, tmp_path / "library", faults, compacting=True)
    check(worker, tmp_path / "library", written, told)


def test_a_second_writer_learns_who_the_first_one_is(worker, starter, copy, tmp_path, monkeypatch):
    monkeypatch.setattr(worker.capr.index.embedded, "PATIENCE", 0.1)
    done = tmp_path / "done"
    holder = starter.start("hold", path=copy, until=done)
    try:
        while not holder.told:
            assert holder.wait(0.01) is None
        with worker.opened(copy) as library:
            for change in (lambda: library.add(worker.make("new", 1)), lambda: library.remove("d1"), library.compact):
                with pytest.raises(CaprError, match=rf"process {holder.pid}\b.*Fix: "):
                    change()
            assert library.search("cough").hits
            assert library.verify().problems == []
    finally:
        done.write_text("")
        holder.finished()
    with worker.opened(copy) as library:
        assert library.add(worker.make("new", 1)).added == 1
        assert library.document("held") == worker.make("held", 1)


def test_the_right_to_write_goes_with_the_process_that_is_killed(worker, starter, copy, tmp_path):
    holder = starter.start("hold", path=copy, until=tmp_path / "never")
    while not holder.told:
        assert holder.wait(0.01) is None
    holder.kill()
    with worker.opened(copy) as library:
        assert library.add(worker.make("new", 1)).added == 1
        assert library.verify().problems == []


def test_two_processes_that_begin_a_library_at_once_leave_a_whole_one(worker, starter, memory):
    path = memory / "library"
    changes = [["add", [[f"d{number}", 1] for number in range(3)]]]
    children = [starter.start("change", path=path, changes=changes, encoder="fake-a") for _ in range(4)]
    for child in children:
        child.wait()
    for child in children:  # whoever came too late was told so
        for line in child.told:
            assert "crashed" not in line or "is being written by process" in line["crashed"], line["crashed"]
    with worker.opened(path) as library:
        assert library.verify().problems == []
        assert library.stats().documents == 3
