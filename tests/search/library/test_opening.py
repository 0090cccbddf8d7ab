"""Opening a library, and the samples in a library."""

import sqlite3

import pytest
from notes import NOTES, ids, reference

import capr
from capr.annotate import Query
from capr.documents import CaprError, Document
from capr.search import Library


def test_searching_does_not_create_a_library(path):
    with pytest.raises(CaprError, match=rf"no library {path}.*capr index"):
        Library(path).search("fever")
    assert not path.exists()


def test_a_folder_without_a_library_is_refused(path):
    path.mkdir()
    with pytest.raises(CaprError, match=rf"{path} is not a library.*Fix: "):
        Library(path).search("fever")


def test_another_format_is_refused(library, opened, path):
    library.close()
    database = sqlite3.connect(path / "library.db")
    with database:
        database.execute("UPDATE meta SET value = '999' WHERE key = 'format'")
    database.close()
    for use in (lambda lib: lib.search("fever"), lambda lib: lib.add(NOTES), lambda lib: lib.stats()):
        with pytest.raises(CaprError, match=r"format 999.*Fix: "):
            use(opened())


def test_an_open_library_sees_documents_that_another_one_adds(library, opened):
    reader = opened()
    assert ids(reader.search("zebra")) == []
    library.add(Document("z", "PLAN: Zebra."))
    assert ids(reader.search("zebra")) == ["z"]


def test_compacting_does_not_change_results(encoded):
    encoded.add([Document(f"n{i}", f"PLAN: Fever on day {i}.") for i in range(30)])
    encoded.remove(f"n{i}" for i in range(0, 30, 2))
    before = {*ids(encoded.search("fever", 50))}
    encoded.compact()
    assert {*ids(encoded.search("fever", 50))} == before
    assert encoded.add(Document("n2", "PLAN: Fever again.")).added == 1
    assert "n2" in ids(encoded.search("again"))
    assert encoded.verify().problems == []


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    with Library(folder / "library", encoder=reference.encoder_folder(folder / "model", pooling="mean")) as library:
        library.add(capr.samples.documents())
        yield library


def test_samples_are_stored_to_the_character(samples):
    documents = list(capr.samples.documents())
    assert list(samples.documents()) == documents
    check = samples.verify()
    assert (check.problems, check.notices, check.documents) == ([], [], len(documents))
    assert check.vectors == check.passages == samples.stats().passages


def test_all_spans_index_the_original_text(samples):
    documents = {document.id: document for document in capr.samples.documents()}
    seen = set()
    for question in capr.samples.questions()[::8]:
        query = question.question or Query(entity=question.entity or "", aspect=question.aspect or "")
        for hit in samples.search(query, 20, neighbours=1):
            document = documents[hit.document]
            seen.add(hit.document)
            assert document[hit.passage.span] == hit.text
            assert (hit.title, dict(hit.metadata)) == (document.title, dict(document.metadata))
            spans = [*hit.highlights, *(m.span for m in hit.mentions), *(s.span for s in hit.sentences)]
            for span in spans:
                assert hit.passage.span.covers(span)
                assert document[span] == hit[span] != ""
            for near in hit.neighbours:
                assert document[near.span] == near.text
            assert all(0 < sentence.score <= 1 for sentence in hit.sentences)
    assert len(seen) > len(documents) / 2


@pytest.mark.parametrize("query", ["a" * 100_000, "fever " * 20_000, '"' * 1000, "高血压", "the of and", "🩺", "+ - :"])
def test_no_query_is_an_error(samples, query):
    for mode in ("lexical", "hybrid", "dense"):
        samples.search(query, 3, mode=mode)


def test_a_patient_is_found_only_in_its_own_notes(samples):
    for patient in ("p01", "p07", "p23"):
        for mode in ("lexical", "dense", "hybrid"):
            hits = samples.search("medication and follow-up", 50, filters={"patient": patient}, mode=mode)
            assert {hit.metadata["patient"] for hit in hits} == {patient}
