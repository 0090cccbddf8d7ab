"""What the store does for threads, processes and odd documents."""

import os
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


def test_threads_that_have_ended_keep_nothing_open(library):
    def search():
        assert len(library.search("fever")) == 9

    for _ in range(20):
        thread = threading.Thread(target=search)
        thread.start()
        thread.join()
    assert len(library.index.store._connections) <= 3


def test_a_forked_process_has_a_connection_of_its_own(library):
    assert library.search("fever").hits
    mine = library.index.store.database
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        own = library.index.store.database is not mine and len(library.search("fever")) == 9
        os.write(writing, b"1" if own else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"1"
    assert len(library.search("fever")) == 9


def test_a_reader_that_may_not_write_sees_what_others_change(library, monkeypatch):
    library.close()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    reader = Library(library.path)
    assert len(reader.search("fever")) == 9
    monkeypatch.setattr(os, "access", real)
    library.remove(["n0", "n1"])
    library.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    assert len(reader.search("fever")) == 7


def test_mappings_of_any_kind_are_kept(library):
    value = MappingProxyType({"heading": "PLAN", "deep": MappingProxyType({"a": 1})})
    metadata = MappingProxyType({"patient": "p7", "ward": MappingProxyType({"bed": 3})})
    library.add(Document("odd", "PLAN: Cough.", "", metadata, (Annotation("section", Span(0, 12), value),)))
    kept = library.document("odd")
    assert kept.metadata == {"patient": "p7", "ward": {"bed": 3}}
    assert kept.annotations[0].value == {"heading": "PLAN", "deep": {"a": 1}}
    assert [hit.document for hit in library.search("cough", filters={"patient": "p7"})] == ["odd"]
    assert library.verify().problems == []


@pytest.mark.parametrize("metadata", [{("a", "b"): 1}, {"patient": {}}])
def test_metadata_that_cannot_be_kept_is_a_problem(library, metadata):
    if "patient" in metadata:
        metadata["patient"]["again"] = metadata  # in a circle
    added = library.add(Document("odd", "PLAN: Cough.", "", metadata))
    assert [problem.record for problem in added.problems] == ["'odd'"]
    assert library.verify().problems == []


def test_values_that_are_no_numbers_do_not_harm_groups(library):
    library.add(Document("odd", "PLAN: Fever.", "", {"Patient": "p0", "value": float("nan")}))
    assert {hit.group for hit in library.search("fever", group="patient")} == {"p0", "p1", "p2"}


def test_facts_that_were_changed_are_found(library):
    library.index.store.database.execute(
        "UPDATE document_fact SET value = 'p9' WHERE name = 'patient' AND value = 'p2'"
    )
    assert ["filtered by" in problem for problem in library.verify().problems] == [True]


def test_vectors_of_other_dimensions_are_refused(library):
    import numpy as np

    from capr.index.protocol import EncoderIdentity

    with library.index.writing() as writer:
        writer.set_encoder(EncoderIdentity("tiny", "1", 8, ""))
        writer.set_vectors({1: np.zeros(3, np.float32)})
        with pytest.raises(CaprError, match="3 dimensions"):
            writer.commit()
    assert library.verify().problems == []


def test_documents_come_once_while_they_are_replaced(library):
    found = []
    for document in library.documents():
        found.append(document.id)
        library.add(Document("n0", f"PLAN: Cough {len(found)}."), replace=True)
    assert sorted(found) == [f"n{i}" for i in range(9)]


def test_halves_of_surrogate_pairs_are_not_found(library):
    assert library.remove("\ud800") == 0
    with pytest.raises(CaprError, match="no document"):
        library.document("\ud800")


def test_words_are_highlighted_after_others_were_replaced(library):
    library.add(Document("n0", "PLAN: Ureteral scan."), replace=True)
    hit = library.search("ureteral")[0]
    assert [hit[span] for span in hit.highlights] == ["Ureteral"]
    assert hit.sentences


def test_stars_stand_for_aspects_too(library):
    assert len(library.search("fever", filters={"aspect": "pl*"})) == 9
    assert library.search("fever", filters={"aspect": "fam*"}).hits == ()


def test_a_word_that_must_be_there_may_be_long(library):
    assert library.search("fever +" + "x" * 70).hits == ()


def test_what_cannot_be_reached_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "none", Path(tmp_path)):
        with pytest.raises(CaprError, match=r"Fix: "):
            Library(path).search("fever")
