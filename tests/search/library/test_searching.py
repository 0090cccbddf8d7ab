"""Searching a library: modes, filters, groups, and the ranker."""

import json
import time

import pytest
from notes import NOTES, ids, reference

from capr.annotate import Query
from capr.documents import CaprError, Document
from capr.index import Filters


class LengthRanker:
    def scores(self, query, passages):
        return [float(len(passage)) for passage in passages]


def test_an_entity_is_found_by_its_other_names(library):
    results = library.search("myocardial infarction", mode="lexical")
    assert ids(results) == ["a"]
    assert [results[0][span] for span in results[0].highlights] == ["heart attack"]
    assert "heart attack" in {name.lower() for name in results.expanded["myocardial infarction"]}


def test_a_pair_of_entity_and_aspect_finds_its_section(library):
    hit = library.search(Query(entity="fever", aspect="PMHx | family history"), mode="lexical")[0]
    assert (hit.document, hit.aspect) == ("c", "family history")


@pytest.mark.parametrize("query", ["aspirin -stop", '"Start aspirin"', "aspirin +heart", "aspirin patient:p1"])
@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_operators_work_in_every_mode(encoded, query, mode):
    hits = ids(encoded.search(query, mode=mode))
    assert hits[0] == "a"
    assert "b" not in hits


def test_dense_search_finds_the_passage_with_the_nearest_vector(encoded):
    for note in NOTES[1:]:
        hit = encoded.search(note.text, 1, mode="dense")[0]
        assert hit.document == note.id
        assert {*hit.stages} == {"dense"}


def test_stages_have_the_rank_and_score_of_each_search(encoded):
    lexical = encoded.search("stop aspirin", mode="lexical")
    dense = encoded.search("stop aspirin", mode="dense")
    hybrid = encoded.search("stop aspirin", fusion="reciprocal")
    for single, name in ((lexical, "lexical"), (dense, "dense")):
        assert [hit.stages[name].rank for hit in single] == [*range(1, len(single) + 1)]
        ranks = {(*hit.passage.span, hit.document): hit.stages[name] for hit in single}
        for hit in hybrid:
            assert hit.stages.get(name) == ranks.get((*hit.passage.span, hit.document))
    for rank, hit in enumerate(hybrid, 1):
        assert (hit.stages["fusion"].rank, hit.stages["fusion"].score) == (rank, hit.score)
        expected = sum(1 / (60 + hit.stages[name].rank) for name in ("lexical", "dense") if name in hit.stages)
        assert hit.score == pytest.approx(expected)


def test_fusion_of_scores(encoded):
    results = encoded.search("stop aspirin", fusion="scores")
    assert results.hits == encoded.search("stop aspirin").hits  # the default
    assert 0 <= min(hit.score for hit in results) <= max(hit.score for hit in results) <= 1
    assert ids(results)[0] == "b"


def test_k_limits_the_hits(encoded):
    assert [len(encoded.search("aspirin fever", k)) for k in (1, 2, 100)] == [1, 2, 5]


def test_hits_are_grouped_by_document_and_patient(library):
    library.add(Document("e", "PLAN: Aspirin.\n\nDIET: Aspirin with tea.", "", {}))
    plain = library.search("aspirin", mode="lexical")
    by_document = library.search("aspirin", mode="lexical", group="document")
    assert sorted(ids(plain)) == ["a", "b", "e", "e"]
    assert sorted(ids(by_document)) == ["a", "b", "e"]
    assert {hit.group: len(hit.others) for hit in by_document} == {"a": 0, "b": 0, "e": 1}
    assert all(hit.score >= other.score for hit in by_document for other in hit.others)
    by_patient = library.search("fever aspirin", mode="lexical", group="patient")
    assert sorted(hit.group for hit in by_patient) == ["e", "p1", "p2", "p3"]
    (of_p1,) = (hit for hit in by_patient if hit.group == "p1")
    assert {of_p1.document, *ids(of_p1.others)} == {"a", "c"}
    assert len(library.search("fever aspirin", 2, mode="lexical", group="patient")) == 2


def test_groups_are_found_behind_many_passages_of_one_document(opened):
    text = "\n\n".join(f"{name}: Fever fever." for name in ("PLAN", "DIET") * 150)
    library = opened()
    library.add([Document("x", text), *(Document(f"n{i}", f"PLAN: Fever and cough. {i}") for i in range(3))])
    assert ids(library.search("fever", 3, mode="lexical", group="document")) == ["x", "n0", "n1"]


def test_hits_have_as_many_neighbours_as_requested(opened):
    parts = [f"{name}: Part {i}." for i, name in enumerate(["PLAN", "DIET", "ALLERGIES", "HISTORY", "LABS"])]
    library = opened()
    library.add(Document("a", "\n\n".join(parts)))
    hit = library.search("allergies", neighbours=1)[0]
    document = library.document("a")
    assert [near.text for near in hit.neighbours] == [parts[1], parts[3]]
    assert [document[near.span] for near in hit.neighbours] == [parts[1], parts[3]]
    assert library.search("allergies")[0].neighbours == ()
    assert [near.text for near in library.search("plan", neighbours=2)[0].neighbours] == parts[1:3]


def test_filters_leave_out_negated_mentions_and_those_of_relatives(library):
    def search(*without, query="fever", **options):
        return sorted(ids(library.search(query, mode="lexical", filters={"without": without}, **options)))

    assert search() == ["b", "c", "d"]
    assert search("negated") == ["c", "d"]
    assert search("family") == ["b", "d"]
    assert search("negated", "family") == ["d"]
    assert sorted(ids(library.search("fever without:negated", mode="lexical"))) == ["c", "d"]
    assert ids(library.search("pyrexia", mode="lexical", filters=["without=negated", "without=family"])) == ["d"]


def test_filters_objects_are_accepted(library):
    filters = Filters.of({"without": ["negated", "family"]})
    assert ids(library.search("fever", mode="lexical", filters=filters)) == ["d"]
    assert ids(library.search("fever", mode="lexical", filters=Filters.of({"patient": "p3"}))) == ["d"]


def test_without_an_entity_a_notice_says_that_nothing_was_left_out(library):
    results = library.search("monday", mode="lexical", filters={"without": "negated"})
    assert ids(results) == ["d"]
    assert "capr recognised no entity" in results.notices[0]


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_filters_work_in_every_mode(encoded, mode):
    def search(filters):
        return {*ids(encoded.search("fever aspirin", mode=mode, filters=filters))}

    assert search({"patient": "p1"}) == {"a", "c"}
    assert search("date=2023") == {"b", "d"}
    assert search(["title!=x", "patient!=p1"]) == {"b", "d"}
    assert search({"section": "family history"}) == {"c"}
    assert search({"document": ["b", "c"]}) == {"b", "c"}


def test_values_of_one_name_are_alternatives(library):
    for filters, expected in (
        ({"patient": ["p2", "p3"]}, ["b", "d"]),
        ({"date": ["2023-05", "2024"]}, ["b", "c"]),
        (["date=2023-05-01", "date=2024-01-01"], ["b", "c"]),
    ):
        assert sorted(ids(library.search("fever aspirin", mode="lexical", filters=filters))) == expected, filters


def test_a_star_matches_any_characters(opened):
    library = opened()
    types = {"a": "Discharge summary", "b": "Discharge letter", "c": "Letter", "d": "X[1] yes", "e": "X1 no"}
    library.add([Document(id, "Fever.", "", {"type": type, "patient": id}) for id, type in types.items()])
    for filters, expected in (
        ("type=disch*", "ab"),
        ("type=*LETTER", "bc"),
        ("type!=disch*", "cde"),
        ("type=*", "abcde"),
        ("type=zebra*", ""),
        ("type=x[1]*", "d"),
    ):
        assert sorted(ids(library.search("fever", mode="lexical", filters=filters))) == [*expected], filters


def test_field_names_of_filters_ignore_case(opened):
    library = opened()
    library.add([Document("a", "Fever.", "", {"Type": "Letter", "Ward": "North"}), Document("b", "Fever.")])
    for filters in ("Ward=north", "Type=letter", {"Type": "Letter"}):
        assert ids(library.search("fever", mode="lexical", filters=filters)) == ["a"], filters


def test_a_notice_explains_a_filter_that_no_document_meets(library):
    results = library.search("fever", filters={"patient": "p7"})
    assert len(results) == 0
    assert any("patient=p7" in notice and "p1" in notice for notice in results.notices)
    assert any("ward" in notice for notice in library.search("fever", filters={"ward": "x"}).notices)
    assert any(
        "zebra" in notice and "#" not in notice
        for notice in library.search("fever", filters={"section": "zebra"}).notices
    )
    assert any("no words" in notice for notice in library.search("?!").notices)


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"k": 10**9}, {"mode": "magic"}, {"fusion": "magic"}, {"group": "ward"}, {"rerank": True}]
)
def test_invalid_options_are_refused(library, options):
    with pytest.raises(CaprError, match=r"Fix: "):
        library.search("fever", **options)


def test_a_ranker_orders_the_best_candidates(opened):
    library = opened(ranker=LengthRanker())
    library.add(NOTES)
    results = library.search("fever")
    assert [hit.score for hit in results] == sorted((hit.score for hit in results), reverse=True)
    assert [hit.stages["rerank"].rank for hit in results] == [1, 2, 3]
    assert "lexical" in results[0].stages
    assert "rerank" not in library.search("fever", rerank=False)[0].stages


def test_a_ranker_does_not_change_the_number_of_hits(opened):
    library = opened(ranker=LengthRanker())
    library.add([Document(f"n{i}", f"PLAN: Fever on day {i}.") for i in range(80)])
    assert len(library.search("fever", 70, rerank=False)) == 70
    assert len(library.search("fever", 70)) == 70


def test_a_ranker_works_without_hits(opened, tmp_path):
    library = opened(ranker=reference.ranker_folder(tmp_path / "ranker"))
    library.add(NOTES)
    assert "rerank" in library.search("fever")[0].stages
    assert len(library.search("zebra")) == 0


def test_results_as_json(encoded):
    results = encoded.search("aspirin", group="patient", neighbours=1)
    record = json.loads(json.dumps(results.as_json()))
    assert [hit["document"] for hit in record["hits"]] == ids(results)
    assert record["mode"] == "hybrid"
    hit = record["hits"][0]
    assert encoded.document(hit["document"]).text[hit["begin"] : hit["end"]] == hit["text"]


def test_a_search_that_fails_in_one_stage_waits_for_the_other(encoded, monkeypatch):
    events = []

    def lexical(*arguments):
        time.sleep(0.2)
        events.append("lexical ended")
        return []

    def dense(*arguments):
        raise CaprError("the vectors are damaged. Fix: repair them.")

    monkeypatch.setattr(encoded.index, "lexical", lexical)
    monkeypatch.setattr(encoded.index, "dense", dense)
    with pytest.raises(CaprError, match="the vectors are damaged"):
        encoded.search("fever")
    assert events == ["lexical ended"]
