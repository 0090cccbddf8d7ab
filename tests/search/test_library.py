"""A library: what it keeps, and what it finds with and without an encoder."""

import json
import re
import sqlite3
import zlib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import capr
from capr.annotate import Query
from capr.documents import CaprError, Document
from capr.index import Filters
from capr.index.protocol import EncoderIdentity
from capr.search import Library
from capr.search import library as module

_spec = spec_from_file_location("reference", Path(__file__).parents[1] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)

NOTES = [
    Document("a", "PLAN: Start aspirin after the heart attack.\n\nDIET: Tea and bread.", "Note", {"patient": "p1"}),
    Document("b", "PLAN: No fever today. Stop aspirin.", "Note", {"patient": "p2", "date": "2023-05-01"}),
    Document("c", "FAMILY HISTORY: Father had fever.", "Letter", {"patient": "p1", "date": "2024-01-01"}),
    Document("d", "PLAN: Fever of 39 C since Monday.", "Letter", {"patient": "p3", "date": "2023-06-30"}),
]


class WordEncoder:
    """The sum of a random vector for each word; counts what it reads."""

    def __init__(self, name="words", dimensions=32, folder="/models/words"):
        self.identity = EncoderIdentity(name, f"{zlib.crc32(name.encode()):08x}" * 4, dimensions, folder)
        self.read = []

    def passages(self, texts):
        self.read += texts
        return np.array([self.query(text) for text in texts], np.float32).reshape(-1, self.identity.dimensions)

    def query(self, text):
        total = np.full(self.identity.dimensions, 1e-3)
        for word in re.findall(r"\w+", text.lower()):
            total += np.random.default_rng(zlib.crc32(word.encode())).normal(size=len(total))
        return (total / np.linalg.norm(total)).astype(np.float32)


class LengthRanker:
    def scores(self, query, passages):
        return [float(len(passage)) for passage in passages]


@pytest.fixture
def library(opened):
    """The notes, without an encoder."""
    filled = opened()
    filled.add(NOTES)
    return filled


@pytest.fixture
def encoded(opened):
    """The notes, with an encoder."""
    filled = opened(encoder=WordEncoder())
    filled.add(NOTES)
    return filled


def ids(results):
    return [hit.document for hit in results]


def counts(added):
    return added.added, added.replaced, added.unchanged, added.passages, added.encoded


# --- adding ---


def test_documents_are_kept_as_they_are(library, opened):
    assert [library.document(note.id) for note in NOTES] == NOTES
    assert list(opened().documents()) == NOTES
    with pytest.raises(CaprError, match=r"no document 'z'.*Fix: "):
        library.document("z")


def test_documents_that_are_there_are_not_added_again(opened):
    library = opened()
    assert counts(library.add(NOTES)) == (4, 0, 0, 5, 0)
    assert counts(library.add(NOTES)) == (0, 0, 4, 0, 0)
    assert counts(library.add(NOTES[0])) == (0, 0, 1, 0, 0)


def test_files_and_folders_can_be_added(opened, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "n1.txt").write_text("PLAN: Rest.")
    (folder / "n2.txt").write_text("PLAN: Tea.")
    single = tmp_path / "single.txt"
    single.write_text("PLAN: Zebra.")
    library = opened()
    assert library.add([single, NOTES[1]]).added == 2
    assert library.add(str(folder)).added == 2
    assert ids(library.search("tea")) == ["n2.txt"]
    assert ids(library.search("zebra")) == ["single.txt"]


def test_what_could_not_be_read_is_a_problem(opened, tmp_path):
    file = tmp_path / "notes.jsonl"
    file.write_text('{"id": "n1", "text": "Rest."}\n{"id": "n2", "te\n')
    told = []
    added = opened().add(file, on_problem=told.append)
    assert added.added == 1
    assert [problem.file for problem in added.problems] == [str(file)]
    assert told == added.problems


def test_adding_goes_on_where_it_was_interrupted(opened, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    encoder = WordEncoder()

    class PowerCutError(Exception):
        pass

    def fail(kept):
        if "b" in kept:
            raise PowerCutError

    documents = [
        Document(id, f"PLAN: {word} and rest.") for id, word in zip("abcd", ["tea", "ale", "rum", "gin"], strict=True)
    ]
    with pytest.raises(PowerCutError):
        opened(encoder=encoder).add(documents, on_commit=fail)
    library = opened(encoder=encoder)
    assert [document.id for document in library.documents()] == ["a", "b"]
    assert counts(library.add(documents)) == (2, 0, 2, 2, 2)
    assert list(library.documents()) == documents
    assert len(encoder.read) == len(set(encoder.read)) == 4
    assert ids(library.search("rest", mode="lexical")) == ["a", "b", "c", "d"]
    assert library.stats().vectors == 4
    assert library.verify().problems == []


def test_adding_goes_on_after_its_source_has_failed(opened):
    def source():
        yield NOTES[0]
        yield NOTES[1]
        raise OSError("gone")

    library = opened()
    with pytest.raises(OSError, match="gone"):
        library.add(source())
    added = library.add(NOTES)
    assert added.added + added.unchanged == 4
    assert list(library.documents()) == NOTES


def test_kept_documents_are_told_of(opened, monkeypatch):
    monkeypatch.setattr(module, "WITHOUT", 2)
    told = []
    opened().add(NOTES, on_commit=told.append)
    assert told == [["a"], ["b", "c"], ["d"]]


def test_identical_documents_are_not_encoded_again(opened):
    encoder = WordEncoder()
    library = opened(encoder=encoder)
    library.add(Document("a", "PLAN: Rest.", "Note", {"patient": "p1"}))
    added = library.add([Document(id, "PLAN: Rest.", "Note", {"patient": id}) for id in "bcd"])
    assert (added.added, added.encoded, len(encoder.read)) == (3, 0, 1)
    assert library.stats().vectors == 4
    assert sorted(ids(library.search("rest", mode="dense"))) == ["a", "b", "c", "d"]


def test_identical_documents_of_one_call_are_encoded_once(opened):
    encoder = WordEncoder()
    added = opened(encoder=encoder).add([Document(id, "PLAN: Rest.") for id in "abc"])
    assert (added.added, added.encoded, len(encoder.read)) == (3, 1, 1)


def test_another_title_is_encoded_anew(opened):
    encoder = WordEncoder()
    library = opened(encoder=encoder)
    library.add([Document("a", "PLAN: Rest and drink.", "Note"), Document("b", "PLAN: Rest and drink.", "Letter")])
    assert encoder.read == ["Note | PLAN: Rest and drink.", "Letter | PLAN: Rest and drink."]


def test_other_contents_under_a_known_id_are_a_problem(library):
    told = []
    added = library.add([Document("a", "PLAN: Other."), Document("e", "New.")], on_problem=told.append)
    assert counts(added)[:3] == (1, 0, 0)
    (problem,) = added.problems
    assert told == [problem]
    assert ("'a'" in problem.fact, "--replace" in problem.fix, problem.record) == (True, True, "a")
    assert library.document("a") == NOTES[0]


def test_other_contents_within_one_call_are_a_problem_too(opened):
    library = opened()
    added = library.add([Document("a", "One."), Document("a", "Two."), Document("a", "One.")])
    assert (added.added, added.unchanged, len(added.problems)) == (1, 1, 1)
    assert library.document("a").text == "One."


def test_a_document_is_replaced_if_wanted(encoded):
    added = encoded.add([Document("a", "PLAN: Zebra."), NOTES[1]], replace=True)
    assert counts(added) == (0, 1, 1, 1, 1)
    assert encoded.document("a").text == "PLAN: Zebra."
    assert ids(encoded.search("aspirin", mode="lexical")) == ["b"]
    assert ids(encoded.search("zebra"))[0] == "a"
    assert encoded.verify().problems == []


def test_a_change_of_metadata_is_a_change(encoded):
    moved = Document("a", NOTES[0].text, "Note", {"patient": "p9"})
    added = encoded.add(moved, replace=True)
    assert (added.replaced, added.encoded) == (1, 0)
    assert ids(encoded.search("aspirin", filters="patient=p9")) == ["a", "a"]
    assert encoded.document("a") == moved


@pytest.mark.parametrize("document", [Document("", "Text."), Document("  ", "Text."), Document("a", "half \ud83d")])
def test_a_document_that_cannot_be_kept_is_a_problem(opened, document):
    library = opened()
    added = library.add([document, NOTES[1]])
    assert (added.added, len(added.problems)) == (1, 1)
    assert added.problems[0].fix
    assert library.stats().documents == 1


def test_half_a_surrogate_pair_in_the_metadata_is_a_problem(opened):
    added = opened().add([Document("a", "Text.", "", {"ward": "half \ud83d"}), NOTES[1]])
    assert (added.added, len(added.problems)) == (1, 1)


def test_an_empty_document_is_kept(opened):
    library = opened(encoder=WordEncoder())
    assert counts(library.add([Document("a", ""), Document("b", " \n")])) == (2, 0, 0, 0, 0)
    assert library.document("b").text == " \n"
    assert library.verify().problems == []
    assert len(library.search("anything")) == 0


def test_what_was_removed_is_gone_at_once(encoded, opened):
    reader = opened(encoder=WordEncoder())
    assert "a" in ids(reader.search("aspirin"))
    assert encoded.remove("a") == 1
    for library in (reader, encoded):
        for mode in ("lexical", "dense", "hybrid"):
            assert "a" not in ids(library.search("aspirin", mode=mode))
    assert encoded.remove(["a", "b"]) == 1
    assert encoded.stats().documents == 2
    assert encoded.verify().problems == []


def test_documents_can_be_removed_by_filters(library):
    assert library.remove(filters={"patient": "p1"}) == 2
    assert [document.id for document in library.documents()] == ["b", "d"]
    with pytest.raises(CaprError, match="without"):
        library.remove(filters={"without": "negated"})
    with pytest.raises(CaprError, match="without"):
        library.remove(filters=Filters(without=frozenset({"negated"})))


@pytest.mark.parametrize("value", [["x", "Y"], [("a", "b")], {"a": 1}, 1.5, True, None, float("inf"), {"z"}, ""])
def test_nothing_is_left_of_what_was_removed(opened, value):
    library = opened()
    document = Document("a", "PLAN: Fever.", "", {"key": value})
    assert library.add(document).added == 1
    assert library.add(document).unchanged == 1
    assert library.verify().problems == []
    library.remove("a")
    assert library.verify().problems == []
    assert library.stats().fields == {}


# --- encoders ---


def test_without_an_encoder_words_are_compared_and_a_notice_says_so(library, path):
    results = library.search("aspirin")
    assert (results.mode, sorted(ids(results))) == ("lexical", ["a", "b"])
    (notice,) = results.notices
    assert "only words were compared" in notice
    assert f"capr encode {path}" in notice
    assert library.search("aspirin", mode="lexical").notices == ()


def test_dense_search_without_an_encoder_names_the_command(library, path):
    with pytest.raises(CaprError, match=rf"dense search is not possible.*capr encode {path}"):
        library.search("aspirin", mode="dense")


def test_an_encoder_that_is_not_there_any_more_is_named(opened, path, tmp_path):
    folder = tmp_path / "model"
    opened(encoder=WordEncoder(folder=str(folder))).add(NOTES)
    library = opened()
    results = library.search("aspirin")
    assert (results.mode, sorted(ids(results))) == ("lexical", ["a", "b"])
    assert str(folder) in results.notices[0]
    with pytest.raises(CaprError, match=f"{folder}.*Fix: "):
        library.search("aspirin", mode="dense")
    with pytest.raises(CaprError, match=f"{folder}.*Fix: "):
        library.add(Document("z", "New."))


def test_another_encoder_is_refused_with_the_command_to_run(encoded, opened, path):
    other = opened(encoder=WordEncoder("other", folder="/models/other"))
    fix = f"capr encode {path} --encoder /models/other"
    with pytest.raises(CaprError, match=f"made by words .*{fix}"):
        other.add(Document("z", "New."))
    with pytest.raises(CaprError, match=fix):
        other.search("aspirin", mode="dense")
    results = other.search("aspirin")
    assert results.mode == "lexical"
    assert fix in results.notices[0]
    assert encoded.stats().documents == 4


def test_passages_can_be_encoded_later(library, opened, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    told = []
    assert library.encode(WordEncoder(), lambda *done: told.append(done)) == 5
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert library.encode() == 0
    assert library.search("aspirin").mode == "hybrid"
    direct = opened(encoder=WordEncoder())
    assert ids(direct.search("Start aspirin", mode="dense"))[0] == "a"
    assert library.verify().problems == []


def test_encoding_goes_on_where_it_was_interrupted(library, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    encoder = WordEncoder()

    def fail(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.encode(encoder, fail)
    assert library.stats().vectors == 2
    assert library.encode(encoder) == 3
    assert len(encoder.read) == 5


def test_another_encoder_makes_all_vectors_again(encoded, opened):
    other = WordEncoder("other", dimensions=16)
    assert encoded.encode(other) == 5
    assert encoded.stats().encoder == other.identity
    assert (encoded.stats().vectors, len(other.read)) == (5, 5)
    assert ids(encoded.search("Fever of 39 C since Monday", 1, mode="dense")) == ["d"]
    assert encoded.verify().problems == []
    with pytest.raises(CaprError, match="made by other"):
        opened(encoder=WordEncoder()).search("fever", mode="dense")


def test_without_an_encoder_there_is_nothing_to_encode_with(library):
    with pytest.raises(CaprError, match="no encoder"):
        library.encode()


def test_the_encoder_of_a_folder_is_remembered(opened, tmp_path):
    folder = reference.encoder_folder(tmp_path / "model", pooling="mean")
    opened(encoder=folder).add(NOTES)
    library = opened()
    results = library.search("PLAN: Fever of 39 C since Monday.", 1)
    assert (results.mode, ids(results), results.notices) == ("hybrid", ["d"], ())
    assert library.add(Document("z", "PLAN: New.")).encoded == 1
    assert library.stats().encoder.folder == str(folder)


def test_an_encoder_that_was_moved_is_the_same(opened, tmp_path):
    folder = reference.encoder_folder(tmp_path / "model", pooling="mean")
    opened(encoder=folder).add(NOTES)
    moved = folder.rename(tmp_path / "moved")
    assert opened(encoder=moved).add(Document("z", "PLAN: New.")).encoded == 1
    assert opened().search("new").mode == "hybrid"


# --- finding ---


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
def test_operators_hold_in_every_mode(encoded, query, mode):
    found = ids(encoded.search(query, mode=mode))
    assert found[0] == "a"
    assert "b" not in found


def test_dense_search_finds_the_passage_with_the_nearest_vector(encoded):
    for note in NOTES[1:]:
        hit = encoded.search(note.text, 1, mode="dense")[0]
        assert hit.document == note.id
        assert {*hit.stages} == {"dense"}


def test_stages_tell_rank_and_score_of_each_search(encoded):
    lexical = encoded.search("stop aspirin", mode="lexical")
    dense = encoded.search("stop aspirin", mode="dense")
    hybrid = encoded.search("stop aspirin", fusion="reciprocal")
    for single, name in ((lexical, "lexical"), (dense, "dense")):
        assert [hit.stages[name].rank for hit in single] == [*range(1, len(single) + 1)]
        ranks = {(*hit.passage.span, hit.document): hit.stages[name] for hit in single}
        for hit in hybrid:
            assert hit.stages.get(name) == ranks.get((*hit.passage.span, hit.document))
    for place, hit in enumerate(hybrid, 1):
        assert (hit.stages["fusion"].rank, hit.stages["fusion"].score) == (place, hit.score)
        expected = sum(1 / (60 + hit.stages[name].rank) for name in ("lexical", "dense") if name in hit.stages)
        assert hit.score == pytest.approx(expected)


def test_fusion_of_scores(encoded):
    results = encoded.search("stop aspirin", fusion="scores")
    assert results.hits == encoded.search("stop aspirin").hits  # which is the default
    assert 0 <= min(hit.score for hit in results) <= max(hit.score for hit in results) <= 1
    assert ids(results)[0] == "b"


def test_k_is_the_most(encoded):
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


def test_groups_are_found_behind_many_passages_of_one(opened):
    many = "\n\n".join(f"{name}: Fever fever." for name in ("PLAN", "DIET") * 150)
    library = opened()
    library.add([Document("x", many), *(Document(f"n{i}", f"PLAN: Fever and cough. {i}") for i in range(3))])
    assert ids(library.search("fever", 3, mode="lexical", group="document")) == ["x", "n0", "n1"]


def test_neighbours_are_shown_if_asked_for(opened):
    parts = [f"{name}: Part {place}." for place, name in enumerate(["PLAN", "DIET", "ALLERGIES", "HISTORY", "LABS"])]
    library = opened()
    library.add(Document("a", "\n\n".join(parts)))
    hit = library.search("allergies", neighbours=1)[0]
    document = library.document("a")
    assert [near.text for near in hit.neighbours] == [parts[1], parts[3]]
    assert [document[near.span] for near in hit.neighbours] == [parts[1], parts[3]]
    assert library.search("allergies")[0].neighbours == ()
    assert [near.text for near in library.search("plan", neighbours=2)[0].neighbours] == parts[1:3]


def test_mentions_that_are_negated_or_of_relatives_can_be_left_out(library):
    def found(*without, query="fever", **options):
        return sorted(ids(library.search(query, mode="lexical", filters={"without": without}, **options)))

    assert found() == ["b", "c", "d"]
    assert found("negated") == ["c", "d"]
    assert found("family") == ["b", "d"]
    assert found("negated", "family") == ["d"]
    assert sorted(ids(library.search("fever without:negated", mode="lexical"))) == ["c", "d"]
    assert ids(library.search("pyrexia", mode="lexical", filters=["without=negated", "without=family"])) == ["d"]


def test_filters_can_be_given_ready_made(library):
    ready = Filters.of({"without": ["negated", "family"]})
    assert ids(library.search("fever", mode="lexical", filters=ready)) == ["d"]
    assert ids(library.search("fever", mode="lexical", filters=Filters.of({"patient": "p3"}))) == ["d"]


def test_without_an_entity_a_notice_says_that_nothing_was_left_out(library):
    results = library.search("monday", mode="lexical", filters={"without": "negated"})
    assert ids(results) == ["d"]
    assert "no entity was recognised" in results.notices[0]


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_filters_hold_in_every_mode(encoded, mode):
    def found(filters):
        return {*ids(encoded.search("fever aspirin", mode=mode, filters=filters))}

    assert found({"patient": "p1"}) == {"a", "c"}
    assert found("date=2023") == {"b", "d"}
    assert found(["title!=x", "patient!=p1"]) == {"b", "d"}
    assert found({"section": "family history"}) == {"c"}
    assert found({"document": ["b", "c"]}) == {"b", "c"}


def test_values_of_one_name_are_alternatives(library):
    for given, found in (
        ({"patient": ["p2", "p3"]}, ["b", "d"]),
        ({"date": ["2023-05", "2024"]}, ["b", "c"]),
        (["date=2023-05-01", "date=2024-01-01"], ["b", "c"]),
    ):
        assert sorted(ids(library.search("fever aspirin", mode="lexical", filters=given))) == found, given


def test_a_star_stands_for_anything(opened):
    library = opened()
    types = {"a": "Discharge summary", "b": "Discharge letter", "c": "Letter", "d": "X[1] yes", "e": "X1 no"}
    library.add([Document(id, "Fever.", "", {"type": type, "patient": id}) for id, type in types.items()])
    for given, found in (
        ("type=disch*", "ab"),
        ("type=*LETTER", "bc"),
        ("type!=disch*", "cde"),
        ("type=*", "abcde"),
        ("type=zebra*", ""),
        ("type=x[1]*", "d"),
    ):
        assert sorted(ids(library.search("fever", mode="lexical", filters=given))) == [*found], given


def test_names_of_the_source_can_be_filtered_by_as_they_are(opened):
    library = opened()
    library.add([Document("a", "Fever.", "", {"Type": "Letter", "Ward": "North"}), Document("b", "Fever.")])
    for given in ("Ward=north", "Type=letter", {"Type": "Letter"}):
        assert ids(library.search("fever", mode="lexical", filters=given)) == ["a"], given


def test_a_filter_that_nothing_passes_is_explained(library):
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
def test_options_that_do_not_exist_are_refused(library, options):
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


def test_a_ranker_leaves_as_many_hits_as_asked_for(opened):
    library = opened(ranker=LengthRanker())
    library.add([Document(f"n{i}", f"PLAN: Fever on day {i}.") for i in range(80)])
    assert len(library.search("fever", 70, rerank=False)) == 70
    assert len(library.search("fever", 70)) == 70


def test_the_ranker_of_a_folder_may_find_nothing(opened, tmp_path):
    library = opened(ranker=reference.ranker_folder(tmp_path / "ranker"))
    library.add(NOTES)
    assert "rerank" in library.search("fever")[0].stages
    assert len(library.search("zebra")) == 0


def test_results_are_plain_as_json(encoded):
    results = encoded.search("aspirin", group="patient", neighbours=1)
    record = json.loads(json.dumps(results.as_json()))
    assert [hit["document"] for hit in record["hits"]] == ids(results)
    assert record["mode"] == "hybrid"
    hit = record["hits"][0]
    assert encoded.document(hit["document"]).text[hit["begin"] : hit["end"]] == hit["text"]


# --- the files ---


def test_a_library_that_is_not_there_is_not_made_by_looking(path):
    with pytest.raises(CaprError, match=rf"no library {path}.*capr index"):
        Library(path).search("fever")
    assert not path.exists()


def test_a_folder_that_is_no_library_is_told(path):
    path.mkdir()
    with pytest.raises(CaprError, match=rf"{path} is not a library.*Fix: "):
        Library(path).search("fever")


def test_another_format_is_refused(library, opened, path):
    library.close()
    database = sqlite3.connect(path / "library.db")
    with database:
        database.execute("UPDATE meta SET value = '999' WHERE key = 'format'")
    database.close()
    for use in (lambda one: one.search("fever"), lambda one: one.add(NOTES), lambda one: one.stats()):
        with pytest.raises(CaprError, match=r"format 999.*Fix: "):
            use(opened())


def test_a_reader_sees_what_another_adds(library, opened):
    reader = opened()
    assert ids(reader.search("zebra")) == []
    library.add(Document("z", "PLAN: Zebra."))
    assert ids(reader.search("zebra")) == ["z"]


def test_compacting_changes_nothing_that_is_found(encoded):
    encoded.add([Document(f"n{i}", f"PLAN: Fever on day {i}.") for i in range(30)])
    encoded.remove(f"n{i}" for i in range(0, 30, 2))
    before = {*ids(encoded.search("fever", 50))}
    encoded.compact()
    assert {*ids(encoded.search("fever", 50))} == before
    assert encoded.add(Document("n2", "PLAN: Fever again.")).added == 1
    assert "n2" in ids(encoded.search("again"))
    assert encoded.verify().problems == []


# --- all samples ---


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    with Library(folder / "library", encoder=reference.encoder_folder(folder / "model", pooling="mean")) as library:
        library.add(capr.samples.documents())
        yield library


def test_samples_are_kept_to_the_character(samples):
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
