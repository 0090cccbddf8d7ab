"""A part of a library, and what can be counted and listed of a library."""

import time

import pytest

from capr.annotate import Query
from capr.documents import CaprError, Document, NotThereError
from capr.search import Library
from capr.search.conditions import fits

SECRET = "HIV infection since 2011."


@pytest.fixture
def library(opened):
    library = opened(encoder="none")
    library.add([
        Document("a1", "FAMILY HISTORY: Father had asthma.\n\nPLAN: Rest for gout.", "Visit", {"patient": "A", "date": "2024-03-05", "type": "Letter"}),
        Document("a2", "PLAN: Tea.", "", {"patient": "A", "date": "2023-01-01", "type": "Note"}),
        Document("b1", f"HISTORY: {SECRET}\n\nPLAN: Continue.", "Secret", {"patient": "B", "date": "2024-03-09", "type": "Letter", "ward": "7"}),
        Document("x", "An article on gout."),
    ])  # fmt: skip
    return library


@pytest.fixture
def part(library):
    return library.within({"patient": "A"})


def test_a_part_finds_nothing_of_others(part, library):
    assert [hit.document for hit in library.search("HIV")] == ["b1"]
    assert len(part.search("HIV")) == 0
    assert {hit.document for hit in part.search("plan")} == {"a1", "a2"}
    assert len(part.search("patient:B plan")) == 0
    assert len(part.search("plan", filters={"patient": ["A", "B"]})) == 2
    assert [hit.group for hit in part.search("plan", group="patient")] == ["A"]


def test_a_part_tells_nothing_of_others(part):
    told = " ".join(part.search("plan", filters={"patient": "B"}).notices)
    assert "there are A" in told
    assert "B," not in told
    assert not any("ward" in notice for notice in part.search("ward:7 plan").notices)
    with pytest.raises(NotThereError) as hidden:
        part.document("b1")
    with pytest.raises(NotThereError) as nothing:
        part.document("b9")
    assert str(hidden.value).replace("b1", "b9") == str(nothing.value)


def test_a_part_counts_lists_and_completes_its_own(part, library):
    assert [one.patient for one in part.patients()] == ["A"]
    assert part.stats().documents == 2
    assert list(part.ids()) == ["a1", "a2"]
    assert part.facets().as_json()["patient"] == [{"value": "A", "count": 2}]
    assert [name for name, _ in part.aspects()] == ["plan", "family history"]
    assert [s.concept.name for s in part.suggest("asthm")] == ["asthma"]
    assert library.suggest("HIV")
    assert part.suggest("HIV") == []


def test_a_part_of_a_part_is_smaller(part):
    assert list(part.within({"type": "note"}).ids()) == ["a2"]
    assert list(part.within({"patient": "B"}).ids()) == []


def test_nobody_is_in_an_empty_cohort(library):
    assert list(library.within({"patient": []}).ids()) == []


def test_what_chooses_passages_makes_no_library(library):
    for filters in ({"without": "negated"}, {"Without": "negated", "patient": "A"}, {"Section": "plan"}):
        with pytest.raises(CaprError, match="whole documents"):
            library.within(filters)


def test_patterns_are_looked_up_anew(library):
    assert list(library.within({"patient": "A*"}).ids()) == ["a1", "a2"]
    library.add(Document("a3", "Rest.", "", {"patient": "AA"}))
    assert list(library.within({"patient": "A*"}).ids()) == ["a1", "a2", "a3"]


def test_a_part_cannot_be_changed(part):
    for change in (lambda: part.add(Document("n", "x")), lambda: part.remove("a1"), part.compact, part.verify):
        with pytest.raises(CaprError, match="cannot be changed"):
            change()


def test_a_part_lets_the_whole_stay_open(part, library):
    part.close()
    assert library.document("a1")


def test_facets_leave_out_their_own_filter(library):
    found = library.facets({"type": "letter", "date": "2024.."}).as_json()
    assert found["documents"] == 2
    assert found["type"] == [{"value": "Letter", "count": 2}]
    assert found["patient"] == [{"value": "A", "count": 1}, {"value": "B", "count": 1}]
    assert found["dates"] == [{"month": "2024-03", "count": 2}]
    every = library.facets({"type": "letter"})
    assert every.fields["type"].values == (("Letter", 2), ("Note", 1))
    assert library.facets().undated == 1
    assert library.facets({"aspect": "plan"}).documents == 3


def test_more_values_than_are_shown(opened):
    library = opened(encoder="none")
    library.add([Document(f"d{i}", "Rest.", "", {"patient": f"p{i:03}"}) for i in range(60)])
    assert library.facets().fields["patient"].more == 10


def test_patients_by_what_was_typed(library):
    assert [(p.patient, p.documents, p.first, p.last) for p in library.patients("a")] == [
        ("A", 2, "2023-01-01", "2024-03-05")
    ]
    assert [p.patient for p in library.patients()] == ["A", "B"]


def test_a_passage_by_its_place(library):
    passage = library.passage("a1", 1)
    assert passage.entry.text == "PLAN: Rest for gout."
    assert passage.passages == 2
    assert len(library.passages("a1")) == 2
    for index in (-1, 2):
        with pytest.raises(NotThereError, match="no passage"):
            library.passage("a1", index)


def test_sentences_are_scored_by_words_where_there_is_no_model(library):
    curve = library.scores(Query(entity="gout", aspect="plan"), "a1", by="best")
    assert curve.by == "words"
    assert [one.both for one in curve] == [0.0, 1.0]
    assert [curve.document[one.span] for one in curve][1].endswith("Rest for gout.")
    assert library.scores("rest", "a1", by="words")[1].both == 1.0
    with pytest.raises(CaprError, match="dense search is not possible"):
        library.scores("gout", "a1", by="encoder")
    with pytest.raises(CaprError, match="Fix: use discourse, encoder"):
        library.scores("gout", "a1", by="magic")


@pytest.mark.shipped
def test_sentences_are_scored_by_the_encoder(path):
    text = "PLAN: Allopurinol was started for gout.\n\nSOCIAL HISTORY: She works as a librarian in the town."
    with Library(path) as library:
        library.add(Document("n", text))
        curve = library.scores(Query(entity="gout", aspect="treatment"), "n", by="best")
        assert curve.by == "encoder"
        best = max(curve, key=lambda one: one.both)
        assert "Allopurinol" in curve.document[best.span]
        assert all(one.entity and one.aspect for one in curve)
        again = library.within({"document": "n"}).scores(Query(entity="gout", aspect="treatment"), "n", by="best")
        assert list(again) == list(curve)


def test_patterns_are_compared_quickly():
    begun = time.perf_counter()
    assert not fits("a" * 5000, "*a" * 500 + "*b*a")
    assert time.perf_counter() - begun < 1
    assert fits("a.b", "a.b*")
    assert not fits("axb", "a.b*")
