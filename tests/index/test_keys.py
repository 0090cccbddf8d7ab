"""Passage numbers map to the right keys, with and without the table, after additions and removals."""

import pytest

from capr.documents import Document
from capr.index import PassageKey
from capr.index.embedded import keys as module
from capr.testing.examples import add, keys, note, remove


def document_of(id, count):
    """Return a document with that many passages."""
    return Document(id, "\n\n".join(f"{heading}: Part." for heading in ["PLAN", "DIET", "NOTE", "LABS"][:count]))


@pytest.fixture
def filled(embedded):
    """An index of documents with and without passages, some of them removed."""
    add(
        embedded,
        document_of("a", 2),
        Document("empty", ""),
        document_of("b", 3),
        Document("none", " \n"),
        note("c"),
        document_of("d", 4),
    )
    remove(embedded, "b", "none")
    return embedded


def numbers_of(index):
    return [number for key in keys(index) for number in index.store.numbers([key]).values()]


@pytest.mark.parametrize("max_documents", [0, module.MAX_DOCUMENTS])
def test_keys_are_the_same_with_and_without_a_table(filled, monkeypatch, max_documents):
    monkeypatch.setattr(module, "MAX_DOCUMENTS", max_documents)
    numbers = numbers_of(filled)
    assert numbers == [1, 2, 6, 7, 8, 9, 10]
    expected = dict(zip(numbers, keys(filled), strict=True))
    for _ in range(3):
        assert filled.store.keys([9, 1, 99, 0]) == {9: PassageKey("d", 2), 1: PassageKey("a", 0)}
        assert filled.store.keys(numbers) == expected
    assert (filled.store._keys._table is None) == (max_documents == 0)
    assert filled.store.keys([]) == {}


def test_new_and_replaced_documents_have_keys_after_the_table_was_made(filled):
    for _ in range(3):
        filled.store.keys(numbers_of(filled))
    assert filled.store._keys._table is not None
    add(filled, document_of("a", 3), document_of("e", 1))
    assert {*filled.store.keys(numbers_of(filled)).values()} == {*keys(filled)}
    assert filled.store.keys([11, 14]) == {11: PassageKey("a", 0), 14: PassageKey("e", 0)}


def test_an_index_without_passages_has_no_keys(embedded):
    add(embedded, Document("empty", ""))
    for _ in range(3):
        assert embedded.store.keys([1, 2, 3]) == {}
