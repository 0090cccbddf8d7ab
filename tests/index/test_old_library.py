"""A library from commit 9614301, before engines had keys and named spaces, can be opened, searched and verified.

It has two notes with three passages, and vectors of passages and sentences. A third note was removed.
"""

import tarfile
from pathlib import Path

import numpy as np
import pytest

from capr.documents import Document
from capr.index import SENTENCES, Clause, Filters, PassageKey
from capr.search import Library

ARCHIVE = Path(__file__).parent / "data" / "library_format_1.tar.gz"
NOTES = [
    Document(
        "n1",
        "PLAN: Start aspirin after the heart attack.\n\nDIET: Low salt.",
        "Discharge",
        {"patient": "p1", "date": "2023-01-05"},
    ),
    Document(
        "n2",
        "No fever. Takes furosemide.",
        "Visit",
        {"patient": "p2", "date": "2024-02-01", "file": "a/b.txt"},
    ),
]
KEYS = [PassageKey("n1", 0), PassageKey("n1", 1), PassageKey("n2", 0)]


@pytest.fixture
def old(tmp_path):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "library", filter="data")
    with Library(tmp_path / "library", encoder="none", discourse="none") as library:
        yield library


def unit(axis):
    return np.eye(8, dtype=np.float32)[axis]


def test_it_opens_and_verifies_without_a_rebuild(old, caplog):
    check = old.verify()
    assert (check.problems, check.notices, check.documents, check.passages) == ([], [], 2, 3)
    assert (check.vectors, check.sentence_vectors) == (3, 4)
    assert list(old.documents()) == NOTES
    assert not caplog.records


def test_it_can_be_searched_by_words_vectors_and_sentences(old):
    (hit,) = old.search("myocardial infarction", mode="lexical")
    assert (hit.document, hit[hit.highlights[0]]) == ("n1", "heart attack")
    for axis, key in enumerate(KEYS):
        assert old.index.dense(unit(axis), 1, Filters())[0].key == key
        assert old.index.dense(unit(axis), 1, Filters(), (), SENTENCES)[0].key == key
    (match,) = old.index.lexical([Clause("salt", {"text": 1.0})], 9, Filters.of({"date": "2023"}))
    assert (match.key, match.order) == (PassageKey("n1", 1), 2)


def test_its_documents_are_recognised(old):
    added = old.add(NOTES)
    assert (added.unchanged, added.added, added.replaced) == (2, 0, 0)


def test_it_can_be_changed_and_compacted(old):
    old.add(Document("n4", "Asthma."))
    assert old.remove("n1") == 1
    old.compact()
    assert [hit.document for hit in old.search("furosemide asthma", mode="lexical")] == ["n4", "n2"]
    assert old.verify().problems == []


def test_its_statistics_have_the_documented_names(old):
    record = old.stats().as_json()
    names = (
        "documents patients passages characters mentions vectors encoder sentences passages_with_sentences discourse "
        "piece_vectors"
    )
    assert list(record) == [*names.split(), "disk", "fields"]
    assert record["encoder"] == {"name": "tiny", "digest": "0123", "dimensions": 8, "folder": "/models/tiny"}
    assert (record["vectors"], record["sentences"], record["passages_with_sentences"]) == (3, 4, 3)
