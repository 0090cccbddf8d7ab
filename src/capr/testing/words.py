"""The contract of an engine: search by words."""

from __future__ import annotations

import numpy as np
import pytest

from capr.documents import Document
from capr.index import (
    Clause,
    Index,
)
from capr.testing.examples import (
    ALL,
    FEVER,
    TEXT,
    add,
    by_meaning,
    by_words,
    mention,
    names,
    note,
    prepare,
    remove,
    stored,
    unit,
)


class LexicalSearch:
    """Tests of lexical search."""

    def test_the_passage_with_more_rare_words_is_first(self, index: Index) -> None:
        add(
            index,
            note("a", "fever fever cough"),
            note("b", "fever rash today"),
            note("c", "fever in the morning again"),
        )
        assert by_words(index, "fever", "rash")[0] == "b"
        assert by_words(index, "fever") == ["a", "b", "c"]
        assert by_words(index, "zebra") == by_words(index) == []

    def test_words_match_without_case_accents_and_endings(self, index: Index) -> None:
        add(index, note("a", "Fevers of MÉNIÈRE"))
        assert by_words(index, "fever") == by_words(index, "FEVER") == by_words(index, "meniere") == ["a"]
        assert index.stems(["Fevers", "fever", "Ménière"])[:2] == index.stems(["fevers", "FEVER"])

    def test_matches_are_sorted_by_score_and_at_most_k(self, index: Index) -> None:
        add(index, *(note(f"n{i}", "fever " * (i + 1) + "cough") for i in range(6)))
        matches = index.lexical([Clause("fever", TEXT)], 4, ALL)
        assert names(index, matches) == ["n5", "n4", "n3", "n2"]
        assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)

    def test_equal_passages_are_in_the_order_in_which_they_were_added(self, index: Index) -> None:
        add(index, *(note(f"n{i}") for i in range(8)))
        assert by_words(index, "fever") == [f"n{i}" for i in range(8)]

    @pytest.mark.parametrize(
        ("clauses", "expected"),
        [
            ([("fever", "must")], ["a", "b"]),
            ([("rash", "should"), ("cough", "not")], ["b"]),
            ([("fever", "must"), ("rash", "must")], ["b"]),
            ([("fever", "should"), ("rash", "not")], ["a"]),
            ([("fever", "not")], ["c"]),
            ([("fever", "not"), ("rash", "not")], ["c"]),
            ([("fever", "not"), ("cough", "not")], []),
            ([("rash", "should"), ("fever", "must")], ["b", "a"]),
            ([("cough", "must"), ("zebra", "should")], ["c", "a"]),
            ([("zebra", "must"), ("fever", "should")], []),
            ([("high fever", "must")], ["b"]),
            ([("fever high", "must")], []),
            ([("high fever", "not")], ["a", "c"]),
            ([("high fever", "not"), ("cough", "should")], ["c", "a"]),
            ([("high fever", "should")], ["b"]),
        ],
    )
    def test_clauses_should_must_and_must_not_match(
        self, index: Index, clauses: list[tuple[str, str]], expected: list[str]
    ) -> None:
        add(index, note("a", "fever and cough, high"), note("b", "high fever with rash"), note("c", "cough"))
        matches = index.lexical([Clause(words, TEXT, occur) for words, occur in clauses], 10, ALL)
        assert names(index, matches) == expected

    def test_a_clause_without_words_has_no_effect(self, index: Index) -> None:
        add(index, note("a", vector=unit(1)))
        for words in ("", "...", " - "):
            for occur in ("should", "must", "not"):
                clauses = [Clause("fever", TEXT), Clause(words, TEXT, occur)]
                assert names(index, index.lexical(clauses, 5, ALL)) == ["a"], (words, occur)
                assert by_meaning(index, unit(1), clauses=clauses) == ["a"], (words, occur)

    def test_a_clause_searches_only_its_fields(self, index: Index) -> None:
        text = "PLAN: Rest and tea."
        add(
            index,
            prepare(Document("a", text, "Influenza"), [mention(text, "Rest", FEVER)]),
            Document("b", "influenza and plan"),
        )
        assert by_words(index, "influenza", fields={"title": 1.0}) == ["a"]
        assert by_words(index, "plan", fields={"heading": 1.0}) == ["a"]
        assert by_words(index, "plan", fields={"aspect": 1.0}) == ["a"]
        assert by_words(index, "pla", fields={"aspect": 1.0}) == []
        assert by_words(index, FEVER.code, fields={"entities": 1.0}) == ["a"]
        assert by_words(index, FEVER.code.lower(), fields={"entities": 1.0}) == []
        assert by_words(index, "influenza", fields={"text": 0.1, "title": 10.0}) == ["a", "b"]
        assert by_words(index, "influenza", fields={"text": 10.0, "title": 0.1}) == ["b", "a"]
        assert by_words(index, "influenza", fields={"text": 1.0, "title": 1.0}, occur="not") == []

    def test_an_aspect_of_several_words_matches_only_as_a_whole(self, index: Index) -> None:
        add(index, Document("a", "PAST MEDICAL HISTORY: Gout.\n\nPLAN: Rest."))
        matches = index.lexical([Clause("past medical history", {"aspect": 1.0})], 5, ALL)
        assert [passage.entry.aspect for passage in stored(index, matches)] == ["past medical history"]
        assert index.lexical([Clause("medical history", {"aspect": 1.0})], 5, ALL) == []

    def test_a_word_in_fewer_passages_is_rarer(self, index: Index) -> None:
        add(index, note("a", "fever cough"), note("b", "fever"), note("c", "rash"))
        fever, cough, zebra = index.rarity(["fever", "cough", "zebra"])
        assert cough > fever > zebra == 0
        assert fever == pytest.approx(np.log(1 + 1.5 / 2.5))

    def test_a_word_that_only_removed_documents_contain_has_no_rarity(self, index: Index) -> None:
        add(index, note("a", "zebra"), note("b", "zebra"), note("c", "zebra"), note("d", "fever"))
        remove(index, "a", "b", "c")
        assert index.rarity(["zebra"]) == [0]
        assert index.rarity(["fever"])[0] > 0

    def test_rarity_is_never_negative(self, index: Index) -> None:
        add(index, *(note(f"n{i}", "zebra") for i in range(5)), note("d", "fever"))
        remove(index, *(f"n{i}" for i in range(4)))
        assert min(index.rarity(["zebra", "fever"])) >= 0
