"""The contract of an engine: filters."""

from __future__ import annotations

from typing import Any

import pytest

from capr.documents import Document
from capr.index import (
    Clause,
    Filters,
    Index,
    PreparedDocument,
)
from capr.runtime.identity import Vector
from capr.testing.examples import (
    ASTHMA,
    FEVER,
    TEXT,
    add,
    by_meaning,
    by_words,
    fill,
    mention,
    note,
    prepare,
    remove,
    stored,
    unit,
)


class Filtering:
    """Tests of filters in every method that takes them."""

    @pytest.fixture
    def filled(self, index: Index) -> Index:
        """An index with the notes for filters."""
        return fill(index)

    @pytest.mark.parametrize(
        ("filters", "passing"),
        [
            ({}, "abcde"),
            ({"patient": "p1"}, "a"),
            ({"patient": ["p1", "p2"]}, "acd"),
            ({"patient": "nobody"}, ""),
            ({"document": ["a", "c", "zz"]}, "ac"),
            ({"id": "b"}, "b"),
            (["id!=b"], "acde"),
            ({"date": "2023-01-31"}, "ae"),
            ({"date": "2023-01"}, "ae"),
            ({"date": "2023"}, "abe"),
            ({"date": "2023-02.."}, "bc"),
            ({"date": "..2023-01-31"}, "ae"),
            ({"date": "2023-02..2023-02"}, "b"),
            ({"date": "2025.."}, ""),
            ({"date": ["2023-01", "2024"]}, "ace"),
            (["date=2023-02", "date=2025..", "date=..2022"], "b"),
            (["date!=2023-01"], "bcd"),
            (["date!=2023-01", "date!=2024"], "bd"),
            (["date=2023", "date!=2023-01"], "b"),
            ({"aspect": []}, ""),
            ({"patient": []}, ""),
            ({"type": "discharge summary"}, "a"),
            ({"type": "Letter"}, "be"),
            (["type!=letter"], "acd"),
            (["type!=letter", "type=letter"], ""),
            ({"tags": "y"}, "b"),
            ({"tags": ["x", "z"]}, "b"),
            ({"born": 1960}, "cd"),
            ({"ward": "None"}, ""),
            ({"nothing": "x"}, ""),
            (["nothing!=x"], "abcde"),
            ({"aspect": "plan"}, "ab"),
            ({"section": ["Plan", "diet"]}, "abce"),
            (["section!=plan"], "cde"),
            (["section!=plan", "patient!=p2"], "e"),
            ({"patient": "p2", "date": "2024"}, "c"),
        ],
    )
    def test_filters_exclude_documents_from_searches_and_lists(self, filled: Index, filters: Any, passing: str) -> None:
        selection = Filters.of(filters)
        assert sorted(by_words(filled, "fever", filters=selection)) == [*passing]
        assert by_meaning(filled, unit(1), filters=selection) == [*passing]
        assert filled.ids(selection) == [*passing]
        assert [document.id for document in filled.documents(selection)] == [*passing]

    @pytest.mark.parametrize(
        ("without", "passing"),
        [
            ((), "abcd"),
            (("negated",), "bc"),
            (("family",), "ac"),
            (("negated", "family"), "c"),
            (("possible",), "abcd"),
        ],
    )
    def test_an_entity_filter_needs_a_mention_without_the_properties(
        self, filled: Index, without: tuple[str, ...], passing: str
    ) -> None:
        filters = Filters(without=frozenset(without)).about([FEVER.code])
        assert sorted(by_words(filled, "fever", filters=filters)) == [*passing]
        assert by_meaning(filled, unit(1), filters=filters) == [*passing]
        assert filled.ids(filters) == [*passing]
        assert filled.ids(Filters(without=frozenset(without)).about([ASTHMA.code])) == []
        assert filled.ids(filters.about([ASTHMA.code, FEVER.code])) == [*passing]

    def test_one_mention_without_the_property_is_enough(self, index: Index) -> None:
        text = "no fever, then fever again"
        begin = text.rindex("fever")
        mentions = [mention(text, "fever", FEVER, "negated"), mention(text[:begin] + "@", "@", FEVER)]
        add(index, prepare(Document("a", text), mentions))
        assert index.ids(Filters(entities=(FEVER.code,), without=frozenset({"negated"}))) == ["a"]
        assert index.ids(Filters(entities=(FEVER.code,), without=frozenset({"negated", "family"}))) == ["a"]

    def test_one_passage_has_to_meet_all_conditions_on_passages(self, index: Index) -> None:
        text = "PLAN: fever\n\nDIET: tea"
        add(index, prepare(Document("a", text), [mention(text, "fever", FEVER)]))
        fever = Filters(entities=(FEVER.code,))
        assert index.ids(Filters.of({"aspect": "plan"}) & fever) == ["a"]
        assert index.ids(Filters.of({"aspect": "diet"}) & fever) == []
        matches = index.lexical([Clause("zebra", TEXT, "not")], 5, Filters.of({"aspect": "diet"}))
        assert [passage.entry.text for passage in stored(index, matches)] == ["DIET: tea"]

    def test_filters_apply_to_changed_documents(self, index: Index) -> None:
        add(index, note("a", patient="p1"), note("b", patient="p2"))
        filters = Filters.of({"patient": "p1"})
        assert by_words(index, "fever", filters=filters) == ["a"]
        add(index, note("a", patient="p2"), note("c", patient="p1"))
        assert by_words(index, "fever", filters=filters) == index.ids(filters) == ["c"]
        remove(index, "c")
        assert by_words(index, "fever", filters=filters) == index.ids(filters) == []

    @pytest.mark.parametrize("excluded", [20, 600])
    def test_the_best_passages_are_found_among_many_better_excluded_ones(self, index: Index, excluded: int) -> None:
        """An engine may filter in another way if few passages match the filters."""
        better = [note(f"x{i}", "fever fever fever", unit(1, i / 1e4), patient="p1", ward="W") for i in range(excluded)]
        worse = [
            note(f"n{i}", "fever and " + "cough " * (i + 2), unit(0.1, 1 + i), patient="p2", date="2023-05", ward="V")
            for i in range(6)
        ]
        add(index, *better, *worse)
        for condition in ({"patient": "p2"}, {"date": "2023"}, ["ward!=w"], {"document": [f"n{i}" for i in range(6)]}):
            filters = Filters.of(condition)
            assert by_words(index, "fever", k=3, filters=filters) == ["n0", "n1", "n2"]
            assert by_words(index, "fever", k=50, filters=filters) == [f"n{i}" for i in range(6)]
            assert by_words(index, "fever", k=3, filters=filters, occur="must") == ["n0", "n1", "n2"]
            assert by_meaning(index, unit(1), 3, filters) == ["n0", "n1", "n2"]
            assert len(by_meaning(index, unit(1), 50, filters)) == 6

    @pytest.mark.parametrize("excluded", [10, 400])
    def test_the_best_passages_are_found_by_entity_and_aspect(self, index: Index, excluded: int) -> None:
        def make(id: str, text: str, vector: Vector, *flags: str) -> PreparedDocument:
            return prepare(Document(id, text), [mention(text, "fever", FEVER, *flags)], [vector])

        better = [make(f"x{i}", "PLAN: fever fever", unit(1), "negated") for i in range(excluded)]
        worse = [make(f"n{i}", "DIET: fever" + " tea" * (i + 2), unit(0.1, 1 + i)) for i in range(3)]
        add(index, *better, *worse)
        for filters in (
            Filters(entities=(FEVER.code,), without=frozenset({"negated"})),
            Filters.of({"aspect": "diet"}),
            Filters.of(["aspect!=plan"]),
        ):
            assert by_words(index, "fever", k=2, filters=filters) == ["n0", "n1"]
            assert by_meaning(index, unit(1), 2, filters) == ["n0", "n1"]

    def test_removed_passages_do_not_displace_others(self, index: Index) -> None:
        add(
            index,
            *(note(f"x{i}", "fever fever", unit(1)) for i in range(40)),
            note("a", "fever and cough", unit(0.1, 1)),
        )
        remove(index, *(f"x{i}" for i in range(40)))
        assert by_words(index, "fever", k=1) == by_meaning(index, unit(1), 1) == ["a"]
