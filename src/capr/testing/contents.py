"""The contract of an engine: documents and passages are returned unchanged."""

from __future__ import annotations

import pytest

from capr.documents import Annotation, Document, Span
from capr.index import (
    Filters,
    Index,
    PassageKey,
)
from capr.index.filters import ASPECT
from capr.testing.examples import (
    ALL,
    ASTHMA,
    ENCODER,
    FEVER,
    NOTES,
    add,
    by_meaning,
    by_words,
    fill,
    keys,
    mention,
    note,
    prepare,
    remove,
    unit,
)

DOCUMENTS = [
    Document("empty", ""),
    Document("blank", " \n\t\n "),
    Document("before", "\n\n  fever"),
    Document("after", "fever\n \x0c\n"),
    Document("between", "PLAN: Rest.\r\n\r\n\n\t DIET: Tea. Bread.\n\n\n\nFEVER:\n  none \n"),
    Document("letters", "Ménière 🩺 e\u0301 \u200b İstanbul 高血压 \x00 end. \u2028 Next."),
    Document("title", "fever", "A title; with “marks”\n"),
    Document(
        "said",
        "Causes\nIt is not known.\n\nTreatment\nRest.",
        "Disease",
        {"patient": "p1", "list": ["a", 1, None], "nested": {"a": [1.5, True]}, "empty": "", "größe": "172 cm"},
        (
            Annotation("section", Span(0, 24), {"heading": "Causes", "heading_end": 6}),
            Annotation("section", Span(25, 40), {"heading": "Treatment", "heading_end": 34, "level": 2}),
            Annotation("question", Span(7, 23), {"id": "q1", "answers": ["It"]}),
            Annotation("mark", Span(0, 0)),
        ),
    ),
    Document("long", "\n".join(f"Sentence {i} has some words. And more  of them." for i in range(200)) + "\n "),
]


class Contents:
    """Tests of documents, passages, values and counts."""

    @pytest.mark.parametrize("max_words", [3, 250])
    def test_documents_are_returned_character_for_character(self, index: Index, max_words: int) -> None:
        add(index, *(prepare(document, max_words=max_words) for document in DOCUMENTS))
        assert list(index.documents()) == DOCUMENTS
        assert [index.document(document.id) for document in DOCUMENTS] == DOCUMENTS
        assert index.ids(ALL) == [document.id for document in DOCUMENTS]
        remove(index, "between")
        assert [document.id for document in index.documents()] == [d.id for d in DOCUMENTS if d.id != "between"]

    def test_passages_are_returned_unchanged(self, index: Index) -> None:
        text = DOCUMENTS[4].text
        mentions = [mention(text, "Rest", FEVER, "negated", "historical"), mention(text, "Tea", ASTHMA)]
        batch = [prepare(DOCUMENTS[4], mentions), *(prepare(document, max_words=7) for document in DOCUMENTS[5:])]
        add(index, *batch)
        entries = [entry for prepared in batch for entry in prepared.entries]
        known = [PassageKey(entry.passage.document, entry.passage.index) for entry in entries]
        unknown = [PassageKey("nobody", 0), PassageKey("blank", 0), PassageKey(known[-1].document, 9999)]
        passages = index.passages([*known, *unknown])
        assert [passages[key].entry for key in known] == entries
        assert passages.keys() == set(known)
        assert [key for key, passage in passages.items() if key != passage.key] == []
        assert [passages[key].order for key in known] == sorted(passage.order for passage in passages.values())
        documents = {document.id: document for document in index.documents()}
        for passage in passages.values():
            document = documents[passage.key.document]
            assert document[passage.entry.passage.span] == passage.entry.text
            assert (passage.title, passage.metadata) == (document.title, document.metadata)
            assert passage.passages == len([key for key in known if key.document == document.id])

    def test_filters_exclude_passages(self, index: Index) -> None:
        add(index, note("a", patient="p1"), note("b", patient="p2"), Document("c", "PLAN: Rest.\n\nDIET: Tea."))
        all_keys, patient, diet = keys(index), Filters.of({"patient": "p2"}), Filters.of({"aspect": "diet"})
        assert index.passages(all_keys, patient).keys() == {PassageKey("b", 0)}
        assert (list(index.passages_in("a", patient)), index.document("a", patient)) == ([], None)
        assert index.document("b", patient) == index.document("b")
        assert index.passages(all_keys, diet).keys() == {PassageKey("c", 1)}
        assert [passage.key for passage in index.passages_in("c", diet)] == [PassageKey("c", 1)]

    def test_the_passages_of_a_document_are_in_the_order_of_the_text(self, index: Index) -> None:
        parts = [f"PLAN: Part {i}.\n\nDIET: Part {i}." for i in range(3)]
        add(index, note("x", "other"), Document("a", "\n\n".join(parts)), note("y", "other"))
        passages = index.passages_in("a")
        assert [passage.key for passage in passages] == [PassageKey("a", number) for number in range(6)]
        assert list(index.passages([passage.key for passage in passages]).values()) == list(passages)
        neighbours = [(passage.entry.passage.previous, passage.entry.passage.next) for passage in passages]
        spans = [None, *(passage.entry.passage.span for passage in passages), None]
        assert neighbours == list(zip(spans[:-2], spans[2:], strict=True))

    def test_documents_are_grouped_by_patient(self, index: Index) -> None:
        add(index, note("a", patient="p1"), note("b", Patient="p2"), note("c"))
        assert index.patients_of(["c", "a", "nobody", "b"]) == {"a": "p1", "b": "p2", "c": "c"}

    def test_documents_are_in_the_order_in_which_they_were_added(self, index: Index) -> None:
        add(index, note("z"), note("m"))
        add(index, note("a"))
        add(index, note("z", "rash"))
        assert [document.id for document in index.documents()] == index.ids(ALL) == ["m", "a", "z"]

    def test_values_have_the_number_of_documents(self, index: Index) -> None:
        fill(index)
        assert index.values("patient", 10) == [("p2", 2), ("P1", 1), ("p1", 1)]
        assert index.values("type", 10) == [("letter", 2), ("discharge summary", 1)]
        assert index.values("patient", 1) == [("p2", 2)]
        assert index.values("nothing", 10) == []
        assert index.values(ASPECT, 10) == [("diet", 2), ("plan", 2)]
        remove(index, "c", "d")
        assert index.values("patient", 10) == [("P1", 1), ("p1", 1)]

    def test_has_finds_the_fields_of_documents(self, index: Index) -> None:
        add(index, note("a", patient="p1", Ward="W"))
        assert [index.has(name) for name in ("patient", "ward", "type")] == [True, True, False]

    def test_an_aspect_counts_once_for_a_document(self, index: Index) -> None:
        add(index, Document("a", "PLAN: Rest.\n\nDIET: Tea.\n\nPLAN: More rest."))
        assert index.values(ASPECT, 10) == [("diet", 1), ("plan", 1)]

    @pytest.mark.parametrize("name", ["day", "#day", "month", "Ward", "größe", "a=b"])
    def test_metadata_may_have_any_name(self, index: Index, name: str) -> None:
        add(index, prepare(Document("a", "fever", "", {name: "Monday"})), note("b"))
        assert by_words(index, "fever") == ["a", "b"]
        assert index.notices() == []
        for filters in (Filters.of({name: "Monday"}), Filters.of({name: "monday"})):
            assert by_words(index, "fever", filters=filters) == index.ids(filters) == ["a"]
        assert index.ids(Filters.of({"date": "2023"})) == []

    def test_metadata_is_not_mistaken_for_the_id(self, index: Index) -> None:
        add(index, note("a", vector=unit(1)), note("b", vector=unit(1), document="a"))
        filters = Filters.of({"document": "a"})
        assert by_words(index, "fever", filters=filters) == by_meaning(index, unit(1), filters=filters) == ["a"]
        assert index.ids(filters) == ["a"]

    def test_stats_count_the_contents(self, index: Index) -> None:
        fill(index)
        stats = index.stats()
        assert (stats.documents, stats.patients, stats.passages, stats.mentions, stats.vectors) == (5, 3, 5, 4, 5)
        assert stats.characters == sum(len(text) for _, _, text, _ in NOTES)
        assert stats.encoder == ENCODER
        assert stats.fields == {"date": 5, "patient": 4, "type": 3, "born": 2, "tags": 1}
        remove(index, "a", "b", "c", "d", "e")
        stats = index.stats()
        assert (stats.documents, stats.patients, stats.passages, stats.characters, stats.mentions, stats.vectors) == (
            0,
        ) * 6
        assert stats.fields == {}
