"""Parts of a library; facets, patients, passages and scores of a library."""

import time

import pytest

from capr.annotate import Query
from capr.documents import CaprError, Document, NotFoundError
from capr.search import Library
from capr.search.conditions import matches_pattern

SECRET = "HIV infection since 2011."


@pytest.fixture
def library(opened):
    library = opened(encoder="none")
    library.add(
        [
            Document(
                "a1",
                "FAMILY HISTORY: Father had asthma.\n\nPLAN: Rest for gout.",
                "Visit",
                {"patient": "A", "date": "2024-03-05", "type": "Letter"},
            ),
            Document("a2", "PLAN: Tea.", "", {"patient": "A", "date": "2023-01-01", "type": "Note"}),
            Document(
                "b1",
                f"HISTORY: {SECRET}\n\nPLAN: Continue.",
                "Secret",
                {"patient": "B", "date": "2024-03-09", "type": "Letter", "ward": "7"},
            ),
            Document("x", "An article on gout."),
        ]
    )
    return library


@pytest.fixture
def part(library):
    return library.within({"patient": "A"})


def test_a_part_finds_only_its_own_documents(part, library):
    assert [hit.document for hit in library.search("HIV")] == ["b1"]
    assert len(part.search("HIV")) == 0
    assert {hit.document for hit in part.search("plan")} == {"a1", "a2"}
    assert len(part.search("patient:B plan")) == 0
    assert len(part.search("plan", filters={"patient": ["A", "B"]})) == 2
    assert [hit.group for hit in part.search("plan", group="patient")] == ["A"]


def test_messages_of_a_part_reveal_nothing_about_other_documents(part):
    notices = " ".join(part.search("plan", filters={"patient": "B"}).notices)
    assert "there are A" in notices
    assert "B," not in notices
    assert not any("ward" in notice for notice in part.search("ward:7 plan").notices)
    with pytest.raises(NotFoundError) as hidden:
        part.document("b1")
    with pytest.raises(NotFoundError) as missing:
        part.document("b9")
    assert str(hidden.value).replace("b1", "b9") == str(missing.value)


def test_a_part_counts_lists_and_completes_its_own(part, library):
    assert [patient.patient for patient in part.patients()] == ["A"]
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


def test_an_empty_cohort_has_no_documents(library):
    assert list(library.within({"patient": []}).ids()) == []


def test_filters_on_passages_make_no_part(library):
    for filters in ({"without": "negated"}, {"Without": "negated", "patient": "A"}, {"Section": "plan"}):
        with pytest.raises(CaprError, match="whole documents"):
            library.within(filters)


def test_patterns_include_values_that_were_added_later(library):
    assert list(library.within({"patient": "A*"}).ids()) == ["a1", "a2"]
    library.add(Document("a3", "Rest.", "", {"patient": "AA"}))
    assert list(library.within({"patient": "A*"}).ids()) == ["a1", "a2", "a3"]


def test_a_part_cannot_be_changed(part):
    for change in (lambda: part.add(Document("n", "x")), lambda: part.remove("a1"), part.compact, part.verify):
        with pytest.raises(CaprError, match="cannot be changed"):
            change()


def test_closing_a_part_leaves_the_library_open(part, library):
    part.close()
    assert library.document("a1")


def test_facets_leave_out_their_own_filter(library):
    facets = library.facets({"type": "letter", "date": "2024.."}).as_json()
    assert facets["documents"] == 2
    assert facets["type"] == [{"value": "Letter", "count": 2}]
    assert facets["patient"] == [{"value": "A", "count": 1}, {"value": "B", "count": 1}]
    assert facets["dates"] == [{"month": "2024-03", "count": 2}]
    facets = library.facets({"type": "letter"})
    assert facets.fields["type"].values == (("Letter", 2), ("Note", 1))
    assert library.facets().undated == 1
    assert library.facets({"aspect": "plan"}).documents == 3


def test_facets_count_the_values_that_they_leave_out(opened):
    library = opened(encoder="none")
    library.add([Document(f"d{i}", "Rest.", "", {"patient": f"p{i:03}"}) for i in range(60)])
    assert library.facets().fields["patient"].more == 10


def test_patients_are_completed_by_prefix(library):
    assert [(p.patient, p.documents, p.first, p.last) for p in library.patients("a")] == [
        ("A", 2, "2023-01-01", "2024-03-05")
    ]
    assert [p.patient for p in library.patients()] == ["A", "B"]


def test_a_passage_is_returned_by_its_index(library):
    passage = library.passage("a1", 1)
    assert passage.entry.text == "PLAN: Rest for gout."
    assert passage.passages == 2
    assert len(library.passages("a1")) == 2
    for index in (-1, 2):
        with pytest.raises(NotFoundError, match="no passage"):
            library.passage("a1", index)


def test_without_a_model_sentences_are_scored_by_words(library):
    curve = library.scores(Query(entity="gout", aspect="plan"), "a1", by="best")
    assert curve.by == "words"
    assert [sentence.both for sentence in curve] == [0.0, 1.0]
    assert [curve.document[sentence.span] for sentence in curve][1].endswith("Rest for gout.")
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
        best = max(curve, key=lambda sentence: sentence.both)
        assert "Allopurinol" in curve.document[best.span]
        assert all(sentence.entity and sentence.aspect for sentence in curve)
        cached_curve = library.within({"document": "n"}).scores(
            Query(entity="gout", aspect="treatment"), "n", by="best"
        )
        assert list(cached_curve) == list(curve)


def test_patterns_are_compared_in_linear_time():
    start = time.perf_counter()
    assert not matches_pattern("a" * 5000, "*a" * 500 + "*b*a")
    assert time.perf_counter() - start < 1
    assert matches_pattern("a.b", "a.b*")
    assert not matches_pattern("axb", "a.b*")
