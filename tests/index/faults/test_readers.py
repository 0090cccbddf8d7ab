"""Any number of processes search while one writes: none fails, and none sees a mix of two versions."""

import json
import time

import pytest

from capr.documents import CaprError


def run_together(worker, starter, path, faults, compacting):
    """Run readers beside a writer; return what the writer and each reader logged."""
    readers, seconds = (20, 60) if faults >= 100 else (4, 3 if compacting else 5)
    with worker.open_library(path, worker.FakeEncoder(), worker.FakeDiscourse()) as library:
        library.add([worker.make(f"d{number}", 0) for number in range(12)])
    stop, stop_readers = path.parent / "stop", path.parent / "stop-readers"
    writer = starter.start("write", path=path, rounds=10**9, stop=stop, compacting=compacting)
    processes = [starter.start("read", path=path, stop=stop_readers, seed=seed) for seed in range(readers)]
    time.sleep(seconds)
    stop.write_text("")
    (written,) = writer.finish(timeout=300)
    part = stop_readers.with_suffix(".part")
    part.write_text(json.dumps(written["version"]))
    part.replace(stop_readers)
    logs = [process.finish(timeout=300) for process in processes]
    return written, logs


def check(worker, path, written, logs):
    assert written["version"] > 1
    assert written["warned"] == []
    assert [line for lines in logs for line in lines if "torn" in line] == []
    for lines in logs:
        last = lines[-1]
        assert last["warned"] == []
        assert last["searches"]
        assert last["hits"]
        assert last["last"], "no search found the newest document"
    with worker.open_library(path) as library:
        assert library.verify().problems == []


def test_readers_beside_a_writer_see_whole_documents_and_soon_new_ones(worker, starter, tmp_path, faults):
    written, logs = run_together(worker, starter, tmp_path / "library", faults, compacting=False)
    check(worker, tmp_path / "library", written, logs)


def test_readers_work_while_a_library_is_compacted(worker, starter, tmp_path, faults):
    written, logs = run_together(worker, starter, tmp_path / "library", faults, compacting=True)
    check(worker, tmp_path / "library", written, logs)


def test_the_error_for_a_second_writer_names_the_first(worker, starter, copy, tmp_path, monkeypatch):
    monkeypatch.setattr(worker.capr.index.embedded.views, "LOCK_WAIT", 0.1)
    done = tmp_path / "done"
    holder = starter.start("hold", path=copy, until=done)
    try:
        while not holder.lines:
            assert holder.wait(0.01) is None
        with worker.open_library(copy) as library:
            for change in (lambda: library.add(worker.make("new", 1)), lambda: library.remove("d1"), library.compact):
                with pytest.raises(CaprError, match=rf"process {holder.pid}\b.*Fix: "):
                    change()
            assert library.search("cough").hits
            assert library.verify().problems == []
    finally:
        done.write_text("")
        holder.finish()
    with worker.open_library(copy) as library:
        assert library.add(worker.make("new", 1)).added == 1
        assert library.document("held") == worker.make("held", 1)


def test_a_killed_process_releases_the_lock(worker, starter, copy, tmp_path):
    holder = starter.start("hold", path=copy, until=tmp_path / "never")
    while not holder.lines:
        assert holder.wait(0.01) is None
    holder.kill()
    with worker.open_library(copy) as library:
        assert library.add(worker.make("new", 1)).added == 1
        assert library.verify().problems == []


def test_processes_that_create_a_library_at_once_leave_it_intact(worker, starter, memory):
    path = memory / "library"
    changes = [["add", [[f"d{number}", 1] for number in range(3)]]]
    children = [starter.start("change", path=path, changes=changes, encoder="fake-a") for _ in range(4)]
    for child in children:
        child.wait()
    for child in children:  # a process that comes second reports the other writer
        for line in child.lines:
            assert "crashed" not in line or "is being written by process" in line["crashed"], line["crashed"]
    with worker.open_library(path) as library:
        assert library.verify().problems == []
        assert library.stats().documents == 3
