"""The contract of an engine: additions, removals and replacements."""

from __future__ import annotations

import os

import pytest

from capr.documents import CaprError, Document
from capr.index import (
    Clause,
    Filters,
    Index,
    PassageKey,
)
from capr.segment import Cutting
from capr.testing.examples import (
    ALL,
    TEXT,
    add,
    by_meaning,
    by_words,
    note,
    remove,
    unit,
)


class Changes:
    """Tests of additions, removals and replacements."""

    def test_an_added_document_is_visible_after_the_commit(self, index: Index) -> None:
        with index.writing() as writer:
            writer.add(note("a"))
            assert (index.document("a"), by_words(index, "fever")) == (None, [])
            writer.commit()
            assert index.document("a") == Document("a", "fever")
            assert by_words(index, "fever") == ["a"]

    def test_uncommitted_changes_are_lost(self, index: Index) -> None:
        with index.writing() as writer:
            writer.add(note("a"))
        assert index.document("a") is None
        add(index, note("b"))
        assert [document.id for document in index.documents()] == ["b"]

    def test_an_error_while_writing_discards_the_changes_and_releases_the_lock(self, index: Index) -> None:
        def fail() -> None:
            with index.writing() as writer:
                writer.add(note("a"))
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        add(index, note("b"))
        assert index.ids(ALL) == ["b"]

    def test_a_document_replaces_another_with_the_same_id(self, index: Index) -> None:
        add(index, note("a", "fever and cough", unit(1)), note("b", "fever", unit(0, 1)))
        add(index, note("a", "rash", unit(0, 0, 1)))
        assert index.document("a") == Document("a", "rash")
        assert by_words(index, "fever") == ["b"]
        assert by_words(index, "rash") == ["a"]
        assert by_meaning(index, unit(0, 0, 1)) == ["a", "b"]
        assert index.stats().documents == index.stats().passages == 2

    def test_the_last_document_of_an_id_in_a_commit_stays(self, index: Index) -> None:
        add(index, note("a", "fever"), note("a", "rash"))
        assert (by_words(index, "fever"), by_words(index, "rash")) == ([], ["a"])
        assert index.stats().documents == 1

    def test_a_removed_document_is_gone_at_once(self, index: Index) -> None:
        add(index, note("a", vector=unit(1)), note("b", vector=unit(1)))
        assert remove(index, "a", "nobody") == 1
        assert index.document("a") is None
        assert by_words(index, "fever") == by_meaning(index, unit(1)) == ["b"]
        assert (index.digests(["a"]), index.ids(ALL)) == ({}, ["b"])
        assert remove(index, "a") == 0

    def test_a_removed_document_can_be_added_again(self, index: Index) -> None:
        add(index, note("a"))
        remove(index, "a")
        add(index, note("a"))
        assert by_words(index, "fever") == ["a"]
        assert index.stats().documents == 1

    def test_a_passage_of_a_replaced_document_has_another_order(self, index: Index) -> None:
        add(index, note("a"), note("b"))
        (first, _) = index.lexical([Clause("fever", TEXT)], 2, ALL)
        add(index, note("a", "fever again"))
        ((key, passage),) = index.passages([first.key]).items()
        assert (key, passage.entry.text) == (PassageKey("a", 0), "fever again")
        assert passage.order > first.order
        (replaced,) = (match for match in index.lexical([Clause("fever", TEXT)], 2, ALL) if match.key == key)
        assert replaced.order == passage.order

    def test_an_order_is_never_reused(self, index: Index) -> None:
        add(index, note("a"))
        (first,) = index.lexical([Clause("fever", TEXT)], 1, ALL)
        remove(index, "a")
        assert index.passages([first.key]) == {}
        add(index, note("a"))
        assert index.passages([first.key])[first.key].order > first.order

    def test_each_commit_makes_a_new_state(self, index: Index) -> None:
        with index.writing() as writer:
            writer.add(note("a"))
            writer.commit()
            writer.remove(["a"])
            writer.add(note("b"))
            assert by_words(index, "fever") == ["a"]
            writer.commit()
            assert by_words(index, "fever") == ["b"]
            writer.commit()
        assert index.ids(ALL) == ["b"]

    def test_the_error_for_a_second_writer_names_the_process(self, index: Index) -> None:
        with index.writing():
            with pytest.raises(CaprError, match=rf"process {os.getpid()}\b.*Fix: "), index.writing():
                pass
            assert by_words(index, "fever") == []
        with index.writing():
            pass

    def test_digests_omit_unknown_documents(self, index: Index) -> None:
        first, second = note("a"), note("b", "rash")
        add(index, first, second)
        assert index.digests(["b", "c", "a"]) == {"a": first.digest, "b": second.digest}
        unknown = [f"n{i}" for i in range(1200)]
        assert index.digests([*unknown, "a"]) == {"a": first.digest}

    def test_many_digests_are_filtered_in_one_call(self, index: Index) -> None:
        first, second = note("a", patient="p1"), note("b", patient="p2")
        add(index, first, second)
        ids = [f"n{i}" for i in range(1200)] + ["b", "a"]
        assert index.digests(ids, Filters.of({"patient": "p1"})) == {"a": first.digest}
        assert index.digests(ids, Filters.of({"patient": "p3"})) == {}

    def test_the_index_records_how_documents_are_cut(self, index: Index) -> None:
        assert list(index.cuttings()) == [Cutting()]
        for words in (100, 50, 100):
            with index.writing() as writer:
                writer.set_cutting(Cutting(words))
                writer.commit()
            assert index.cuttings()[-1] == Cutting(words)
        assert set(index.cuttings()) == {Cutting(), Cutting(100), Cutting(50)}
