"""The store with threads, processes and odd documents."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import MappingProxyType

import pytest

from capr.documents import Annotation, CaprError, Document, Span
from capr.search import Library


@pytest.fixture
def library(tmp_path):
    with Library(tmp_path / "library") as library:
        library.add(Document(f"n{i}", f"PLAN: Fever {i}.", "", {"patient": f"p{i % 3}"}) for i in range(9))
        yield library


def test_ended_threads_leave_no_connections_open(library):
    def search():
        assert len(library.search("fever")) == 9

    for _ in range(20):
        thread = threading.Thread(target=search)
        thread.start()
        thread.join()
    assert len(library.index.store._states) <= 3


CLOSED_DURING_A_QUERY = """
import sys, threading, time
from capr.documents import Document
from capr.search import Library

library, rows = Library(sys.argv[1]), []
library.add([Document("n1", "Fever.")])
running = threading.Event()

def query():
    connection = library.index.store.database
    connection.create_function("step", 1, lambda number: number == 9 and running.set() or time.sleep(0.001) or number)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT step(i) FROM n"
    with library.index.store.errors():
        rows.extend(connection.execute(numbers).fetchall())

thread = threading.Thread(target=query)
thread.start()
assert running.wait(60)
library.close()
assert thread.is_alive() and not rows
thread.join()
print(len(rows))
"""


def test_a_query_of_another_thread_survives_closing_the_library(tmp_path):
    command = [sys.executable, "-c", CLOSED_DURING_A_QUERY, str(tmp_path / "library")]
    process = subprocess.run(command, capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (0, "300\n"), process.stderr


def test_closing_a_library_closes_the_idle_connections_of_all_threads(library):
    searched, closed, files = threading.Event(), threading.Event(), []

    def search():
        library.search("fever")
        searched.set()
        closed.wait(60)

    thread = threading.Thread(target=search)
    thread.start()
    assert searched.wait(60)
    for _ in range(2):
        library.close()
        files.append(sorted(path.name for path in library.path.glob("library.db*")))
    closed.set()
    thread.join()
    assert files == [["library.db"], ["library.db"]]  # the last connection to be closed deletes the log


def test_a_forked_process_opens_a_new_connection(library):
    assert library.search("fever").hits
    connection = library.index.store.database
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        separate = library.index.store.database is not connection and len(library.search("fever")) == 9
        os.write(writing, b"1" if separate else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"1"
    assert len(library.search("fever")) == 9


def test_a_read_only_reader_sees_the_changes_of_others(library, monkeypatch):
    library.close()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    reader = Library(library.path)
    assert len(reader.search("fever")) == 9
    monkeypatch.setattr(os, "access", access)
    library.remove(["n0", "n1"])
    library.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    assert len(reader.search("fever")) == 7


def test_mappings_of_any_type_can_be_stored(library):
    value = MappingProxyType({"heading": "PLAN", "deep": MappingProxyType({"a": 1})})
    metadata = MappingProxyType({"patient": "p7", "ward": MappingProxyType({"bed": 3})})
    library.add(Document("odd", "PLAN: Cough.", "", metadata, (Annotation("section", Span(0, 12), value),)))
    stored = library.document("odd")
    assert stored.metadata == {"patient": "p7", "ward": {"bed": 3}}
    assert stored.annotations[0].value == {"heading": "PLAN", "deep": {"a": 1}}
    assert [hit.document for hit in library.search("cough", filters={"patient": "p7"})] == ["odd"]
    assert library.verify().problems == []


@pytest.mark.parametrize("metadata", [{("a", "b"): 1}, {"patient": {}}])
def test_metadata_that_cannot_be_stored_is_a_problem(library, metadata):
    if "patient" in metadata:
        metadata["patient"]["again"] = metadata  # a cycle
    added = library.add(Document("odd", "PLAN: Cough.", "", metadata))
    assert [problem.record for problem in added.problems] == ["'odd'"]
    assert library.verify().problems == []


def test_nan_values_do_not_affect_groups(library):
    library.add(Document("odd", "PLAN: Fever.", "", {"Patient": "p0", "value": float("nan")}))
    assert {hit.group for hit in library.search("fever", group="patient")} == {"p0", "p1", "p2"}


def test_verify_finds_changed_facts(library):
    library.index.store.database.execute(
        "UPDATE document_fact SET value = 'p9' WHERE name = 'patient' AND value = 'p2'"
    )
    assert ["filtered by" in problem for problem in library.verify().problems] == [True]


def test_vectors_with_other_dimensions_are_an_error(library):
    import numpy as np

    from capr.index import PassageKey
    from capr.runtime.identity import EncoderIdentity

    with library.index.writing() as writer:
        writer.set_encoder(EncoderIdentity("tiny", "1", 8, ""))
        writer.set_vectors({PassageKey("n0", 0): np.zeros(3, np.float32)})
        with pytest.raises(CaprError, match="3 dimensions"):
            writer.commit()
    assert library.verify().problems == []


def test_each_document_comes_once_while_documents_are_replaced(library):
    ids = []
    for document in library.documents():
        ids.append(document.id)
        library.add(Document("n0", f"PLAN: Cough {len(ids)}."), replace=True)
    assert sorted(ids) == [f"n{i}" for i in range(9)]


def test_ids_with_lone_surrogates_do_not_exist(library):
    assert library.remove("\ud800") == 0
    with pytest.raises(CaprError, match="no document"):
        library.document("\ud800")


def test_a_replaced_document_has_highlights(library):
    library.add(Document("n0", "PLAN: Ureteral scan."), replace=True)
    hit = library.search("ureteral")[0]
    assert [hit[span] for span in hit.highlights] == ["Ureteral"]
    assert hit.sentences


def test_a_star_matches_aspects(library):
    assert len(library.search("fever", filters={"aspect": "pl*"})) == 9
    assert library.search("fever", filters={"aspect": "fam*"}).hits == ()


def test_a_required_word_may_be_long(library):
    assert library.search("fever +" + "x" * 70).hits == ()


def test_a_path_that_is_not_a_library_is_an_error(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "none", Path(tmp_path)):
        with pytest.raises(CaprError, match=r"Fix: "):
            Library(path).search("fever")


def test_a_folder_with_other_files_does_not_become_a_library(tmp_path):
    (tmp_path / "n1.txt").write_text("PLAN: Rest.")
    with pytest.raises(CaprError) as raised, Library(tmp_path) as library:
        library.add([Document("n1", "PLAN: Rest.")])
    fact = f"{tmp_path} has other files and is not a library"
    assert str(raised.value) == f"{fact}. Fix: name a new or an empty folder."
    assert [path.name for path in tmp_path.iterdir()] == ["n1.txt"]


@pytest.mark.parametrize(
    "names",
    [
        (),
        (".DS_Store", ".git/config"),
        ("lost+found/",),
        ("lock", "library.db.123.part", "library.db.123.part-journal", "words/", "vectors/", "sentences/"),
    ],
    ids=["empty", "hidden", "disk", "interrupted"],
)
def test_an_empty_folder_becomes_a_library(tmp_path, names):
    for name in names:
        path = tmp_path / name
        (path if name.endswith("/") else path.parent).mkdir(exist_ok=True)
        if not name.endswith("/"):
            path.touch()
    with Library(tmp_path) as library:
        library.add([Document("n1", "PLAN: Rest.")])
        assert [hit.document for hit in library.search("rest")] == ["n1"]


def test_an_existing_library_may_have_other_files(library):
    (library.path / "readme.txt").write_text("The notes of ward 3.")
    library.close()
    with Library(library.path) as opened:
        assert opened.add([Document("n10", "PLAN: Rest.")]).added == 1
