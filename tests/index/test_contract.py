"""What every engine of the index does: `EmbeddedIndex`, and a reference that looks at everything in memory."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import DISCOURSE, ENCODER, ReferenceIndex, mention, prepare, sentences, unit

from capr.annotate import Concept
from capr.documents import Annotation, CaprError, Document, Span
from capr.index import Clause, EmbeddedIndex, Filters, Grain
from capr.index import embedded as engine
from capr.index.filters import ASPECT
from capr.index.protocol import EncoderIdentity

ALL = Filters()
TEXT = {"text": 1.0}
FEVER = Concept("MESH:D005334", "symptom", "Fever")
ASTHMA = Concept("MESH:D001249", "disease", "Asthma")


def add(index, *given, encoder=ENCODER, discourse=None):
    with index.writing() as writer:
        if encoder is not None:
            writer.set_encoder(encoder)
        if discourse is not None:
            writer.set_encoder(discourse, Grain.SENTENCES)
        for one in given:
            writer.add(prepare(one) if isinstance(one, Document) else one)
        writer.commit()


def remove(index, *ids):
    with index.writing() as writer:
        count = writer.remove(ids)
        writer.commit()
    return count


def names(index, found):
    """The documents of what was found, in that order."""
    stored = index.passages([one.number for one in found])
    return [stored[one.number].entry.passage.document for one in found]


def by_words(index, *words, k=10, filters=ALL, fields=TEXT, occur="should"):
    return names(index, index.lexical([Clause(word, fields, occur) for word in words], k, filters))


def by_meaning(index, vector, k=10, filters=ALL, clauses=()):
    return names(index, index.dense(vector, k, filters, clauses))


def note(id, text="fever", vector=None, **metadata):
    document = Document(id, text, "", metadata)
    return prepare(document, vectors=None if vector is None else [vector])


# --- changes ---


def test_what_was_added_is_there_once_it_is_committed(index):
    with index.writing() as writer:
        writer.add(note("a"))
        assert (index.document("a"), by_words(index, "fever")) == (None, [])
        writer.commit()
        assert index.document("a") == Document("a", "fever")
        assert by_words(index, "fever") == ["a"]


def test_what_was_not_committed_is_forgotten(index):
    with index.writing() as writer:
        writer.add(note("a"))
    assert index.document("a") is None
    add(index, note("b"))
    assert [document.id for document in index.documents()] == ["b"]


def test_an_error_while_writing_changes_nothing_and_ends_the_right_to_write(index):
    def failing():
        with index.writing() as writer:
            writer.add(note("a"))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    add(index, note("b"))
    assert index.ids(ALL) == ["b"]


def test_a_document_with_the_same_id_replaces_the_other(index):
    add(index, note("a", "fever and cough", unit(1)), note("b", "fever", unit(0, 1)))
    add(index, note("a", "rash", unit(0, 0, 1)))
    assert index.document("a").text == "rash"
    assert by_words(index, "fever") == ["b"]
    assert by_words(index, "rash") == ["a"]
    assert by_meaning(index, unit(0, 0, 1)) == ["a", "b"]
    assert index.stats().documents == index.stats().passages == 2


def test_the_last_of_one_id_within_a_commit_stays(index):
    add(index, note("a", "fever"), note("a", "rash"))
    assert (by_words(index, "fever"), by_words(index, "rash")) == ([], ["a"])
    assert index.stats().documents == 1


def test_what_was_removed_is_gone_at_once(index):
    add(index, note("a", vector=unit(1)), note("b", vector=unit(1)))
    assert remove(index, "a", "nobody") == 1
    assert index.document("a") is None
    assert by_words(index, "fever") == by_meaning(index, unit(1)) == ["b"]
    assert (index.digests(["a"]), index.ids(ALL)) == ({}, ["b"])
    assert remove(index, "a") == 0


def test_a_document_that_was_removed_can_be_added_again(index):
    add(index, note("a"))
    remove(index, "a")
    add(index, note("a"))
    assert by_words(index, "fever") == ["a"]
    assert index.stats().documents == 1


def test_numbers_are_never_used_again(index):
    add(index, note("a"))
    (first,) = index.lexical([Clause("fever", TEXT)], 1, ALL)
    remove(index, "a")
    add(index, note("b"))
    (second,) = index.lexical([Clause("fever", TEXT)], 1, ALL)
    assert second.number > first.number
    assert index.passages([first.number]) == {}
    assert index.neighbours(first.number, 1) == []


def test_several_commits_are_several_states(index):
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


def test_a_second_writer_is_told_who_writes(index, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 0)
    with index.writing():
        with pytest.raises(CaprError, match=rf"process {os.getpid()}\b.*Fix: "), index.writing():
            pass
        assert by_words(index, "fever") == []
    with index.writing():
        pass


def test_digests_are_those_of_the_documents_that_are_there(index):
    one, other = note("a"), note("b", "rash")
    add(index, one, other)
    assert index.digests(["b", "c", "a"]) == {"a": one.digest, "b": other.digest}
    many = [f"n{i}" for i in range(1200)]
    assert index.digests([*many, "a"]) == {"a": one.digest}


# --- words ---


def test_the_passage_with_more_rare_words_comes_first(index):
    add(index, note("a", "fever fever cough"), note("b", "fever rash today"), note("c", "fever in the morning again"))
    assert by_words(index, "fever", "rash")[0] == "b"
    assert by_words(index, "fever") == ["a", "b", "c"]
    assert by_words(index, "zebra") == by_words(index) == []


def test_words_are_compared_without_case_accents_and_endings(index):
    add(index, note("a", "Fevers of MÉNIÈRE"))
    assert by_words(index, "fever") == by_words(index, "FEVER") == by_words(index, "meniere") == ["a"]
    assert index.stems(["Fevers", "fever", "Ménière"])[:2] == index.stems(["fevers", "FEVER"])


def test_scores_fall_and_k_is_the_most(index):
    add(index, *(note(f"n{i}", "fever " * (i + 1) + "cough") for i in range(6)))
    found = index.lexical([Clause("fever", TEXT)], 4, ALL)
    assert names(index, found) == ["n5", "n4", "n3", "n2"]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_equal_passages_come_in_the_order_in_which_they_were_added(index):
    add(index, *(note(f"n{i}") for i in range(8)))
    assert by_words(index, "fever") == [f"n{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("clauses", "found"),
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
def test_what_must_be_and_must_not_be(index, clauses, found):
    add(index, note("a", "fever and cough, high"), note("b", "high fever with rash"), note("c", "cough"))
    given = [Clause(words, TEXT, occur) for words, occur in clauses]
    assert names(index, index.lexical(given, 10, ALL)) == found


def test_a_clause_without_words_asks_for_nothing(index):
    add(index, note("a", vector=unit(1)))
    for words in ("", "...", " - "):
        for occur in ("should", "must", "not"):
            clauses = [Clause("fever", TEXT), Clause(words, TEXT, occur)]
            assert names(index, index.lexical(clauses, 5, ALL)) == ["a"], (words, occur)
            assert by_meaning(index, unit(1), clauses=clauses) == ["a"], (words, occur)


def test_words_are_looked_for_in_the_fields_that_are_named(index):
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


def test_aspects_of_several_words_are_compared_as_a_whole(index):
    add(index, Document("a", "PAST MEDICAL HISTORY: Gout.\n\nPLAN: Rest."))
    whole = index.lexical([Clause("past medical history", {"aspect": 1.0})], 5, ALL)
    assert [index.passages([f.number])[f.number].entry.aspect for f in whole] == ["past medical history"]
    assert index.lexical([Clause("medical history", {"aspect": 1.0})], 5, ALL) == []


def test_rarity_falls_with_the_passages_that_have_a_word(index):
    add(index, note("a", "fever cough"), note("b", "fever"), note("c", "rash"))
    fever, cough, zebra = index.rarity(["fever", "cough", "zebra"])
    assert cough > fever > zebra == 0
    assert fever == pytest.approx(np.log(1 + 1.5 / 2.5))


def test_a_word_that_only_removed_documents_had_tells_nothing(index):
    add(index, note("a", "zebra"), note("b", "zebra"), note("c", "zebra"), note("d", "fever"))
    remove(index, "a", "b", "c")
    assert index.rarity(["zebra"]) == [0]
    assert index.rarity(["fever"])[0] > 0


def test_rarity_is_never_negative(index):
    add(index, *(note(f"n{i}", "zebra") for i in range(5)), note("d", "fever"))
    remove(index, *(f"n{i}" for i in range(4)))
    assert min(index.rarity(["zebra", "fever"])) >= 0


# --- meaning ---


def test_the_nearest_vectors_are_those_with_the_largest_dot_product(index):
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(50, ENCODER.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    add(index, *(note(f"n{i}", "fever", vector) for i, vector in enumerate(vectors)))
    for query in vectors[:5]:
        found = index.dense(query, 10, ALL)
        scores = vectors @ query
        assert [one.score for one in found] == pytest.approx(np.sort(scores)[::-1][:10], abs=0.01)
        for name, one in zip(names(index, found), found, strict=True):
            assert one.score == pytest.approx(scores[int(name[1:])], abs=0.01)


def test_passages_without_a_vector_are_not_found_by_meaning(index):
    add(index, note("a", "fever"), note("b", "rash", unit(1)))
    assert by_meaning(index, unit(1)) == ["b"]
    assert by_words(index, "fever") == ["a"]


def test_there_is_nothing_near_in_an_empty_index(index):
    assert (index.dense(unit(1), 5, ALL), index.lexical([Clause("a", TEXT)], 5, ALL)) == ([], [])
    add(index)
    assert (index.dense(unit(1), 5, ALL), list(index.documents())) == ([], [])


def test_vectors_can_come_later(index):
    add(index, prepare(Document("a", "PLAN: Rest.\n\nDIET: Tea.")), note("b", "fever", unit(1)))
    stored = index.without_vectors(10)
    assert [one.entry.text for one in stored] == ["PLAN: Rest.", "DIET: Tea."]
    assert len(index.without_vectors(1)) == 1
    with index.writing() as writer:
        writer.set_vectors({stored[0].number: unit(0, 1), stored[1].number: unit(0, 0, 1)})
        writer.commit()
    assert index.without_vectors(10) == []
    assert [f.number for f in index.dense(unit(0, 0, 1), 1, ALL)] == [stored[1].number]
    assert index.stats().vectors == 3


def test_a_vector_can_be_exchanged(index):
    add(index, note("a", "fever", unit(1)), note("b", "rash", unit(0, 1)))
    number = index.dense(unit(1), 1, ALL)[0].number
    with index.writing() as writer:
        writer.set_vectors({number: unit(0, 0, 1)})
        writer.commit()
    assert by_meaning(index, unit(1, 0, 0.5)) == ["a", "b"]
    assert by_meaning(index, unit(0, 0, 1)) == ["a", "b"]
    assert index.dense(unit(1), 1, ALL)[0].score == pytest.approx(0, abs=0.01)
    assert index.stats().vectors == 2


def test_vectors_of_a_content_are_known(index):
    one = note("a", "fever", unit(1, 2))
    add(index, one)
    assert np.allclose(index.vectors_of(one.content), [unit(1, 2)], atol=0.01)
    assert index.vectors_of(b"other") is None
    add(index, note("b", "rash"))
    assert index.vectors_of(note("b", "rash").content) is None
    remove(index, "a")
    assert index.vectors_of(one.content) is None


def test_vectors_of_a_content_are_known_if_only_one_of_several_documents_is_encoded(index):
    add(index, note("a"), note("b", vector=unit(1)))
    found = index.vectors_of(note("a").content)
    assert found is not None
    assert np.allclose(found, [unit(1)], atol=0.01)


def test_another_encoder_drops_the_vectors_and_the_same_one_does_not(index):
    add(index, note("a", vector=unit(1)))
    moved = EncoderIdentity("tiny", ENCODER.digest, 8, "/elsewhere")
    add(index, encoder=moved)
    assert (index.encoder(), index.stats().vectors, by_meaning(index, unit(1))) == (moved, 1, ["a"])
    other = EncoderIdentity("other", "4567", 4, "/models/other")
    add(index, encoder=other)
    assert (index.encoder(), index.stats().vectors) == (other, 0)
    query = np.array([1, 0, 0, 0], np.float32)
    assert index.dense(query, 5, ALL) == []
    (stored,) = index.without_vectors(5)
    with index.writing() as writer:
        writer.set_vectors({stored.number: query})
        writer.commit()
    assert by_meaning(index, query) == ["a"]


@pytest.mark.parametrize(("occur", "found"), [("must", ["c", "d"]), ("not", ["a", "b"]), ("should", ["a", "b"])])
@pytest.mark.parametrize("listed", [5000, 1])
def test_clauses_hold_in_dense_search(index, monkeypatch, occur, found, listed):
    monkeypatch.setattr(engine, "LISTED", listed)
    texts = {"a": "cough", "b": "rash", "c": "fever", "d": "fever and rash"}
    add(index, *(note(id, text, unit(1, i / 10)) for i, (id, text) in enumerate(texts.items())))
    clauses = [Clause("fever", TEXT, occur)]
    assert by_meaning(index, unit(1), 2, clauses=clauses) == found
    both = [*clauses, Clause("rash", TEXT, "must")]
    assert by_meaning(index, unit(1), 1, clauses=both) == [{"must": "d", "not": "b", "should": "b"}[occur]]


def test_clauses_and_filters_hold_together_in_dense_search(index):
    add(
        index,
        note("a", "fever", unit(1), patient="p1"),
        note("b", "fever", unit(1, 0.1), patient="p2"),
        note("c", "rash", unit(1, 0.2), patient="p2"),
    )
    must = [Clause("fever", TEXT, "must")]
    assert by_meaning(index, unit(1), filters=Filters.of({"patient": "p2"}), clauses=must) == ["b"]


# --- filters ---

NOTES = [
    ("a", {"patient": "p1", "date": "2023-01-31", "type": "Discharge Summary"}, "PLAN: fever", ["negated"]),
    ("b", {"patient": "P1", "date": "2023-02", "type": "letter", "tags": ["x", "Y"]}, "PLAN: fever", ["family"]),
    ("c", {"patient": "p2", "date": "2024", "born": 1960, "tags": []}, "DIET: fever", []),
    ("d", {"patient": "p2", "date": "yesterday", "born": "1960", "ward": None}, "fever", ["negated", "family"]),
    ("e", {"date": "2023-01-31T10:00", "type": " LETTER "}, "DIET: fever", None),
]


def fill(index):
    given = []
    for place, (id, metadata, text, flags) in enumerate(NOTES):
        document = Document(id, text, "", metadata)
        mentions = [] if flags is None else [mention(text, "fever", FEVER, *flags)]
        given.append(prepare(document, mentions, [unit(1, place / 10)]))
    add(index, *given)
    return index


@pytest.fixture(scope="module", params=["embedded", "reference"])
def filled(request, tmp_path_factory):
    """The notes in each engine, to be read only."""
    embedded = request.param == "embedded"
    engine = EmbeddedIndex(tmp_path_factory.mktemp("library"), create=True) if embedded else ReferenceIndex()
    yield fill(engine)
    engine.close()


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
def test_filters_leave_what_passes(filled, filters, passing):
    chosen = Filters.of(filters)
    assert sorted(by_words(filled, "fever", filters=chosen)) == [*passing]
    assert by_meaning(filled, unit(1), filters=chosen) == [*passing]
    assert filled.ids(chosen) == [*passing]
    assert [document.id for document in filled.documents(chosen)] == [*passing]


@pytest.mark.parametrize(
    ("without", "passing"),
    [((), "abcd"), (("negated",), "bc"), (("family",), "ac"), (("negated", "family"), "c"), (("possible",), "abcd")],
)
def test_an_entity_passes_by_a_mention_without_the_properties(filled, without, passing):
    chosen = Filters(without=frozenset(without)).about([FEVER.code])
    assert sorted(by_words(filled, "fever", filters=chosen)) == [*passing]
    assert by_meaning(filled, unit(1), filters=chosen) == [*passing]
    assert filled.ids(chosen) == [*passing]
    assert filled.ids(Filters(without=frozenset(without)).about([ASTHMA.code])) == []
    assert filled.ids(chosen.about([ASTHMA.code, FEVER.code])) == [*passing]


def test_one_mention_without_the_property_is_enough(index):
    text = "no fever, then fever again"
    begin = text.rindex("fever")
    mentions = [mention(text, "fever", FEVER, "negated"), mention(text[:begin] + "@", "@", FEVER)]
    add(index, prepare(Document("a", text), mentions))
    assert index.ids(Filters(entities=(FEVER.code,), without=frozenset({"negated"}))) == ["a"]
    assert index.ids(Filters(entities=(FEVER.code,), without=frozenset({"negated", "family"}))) == ["a"]


def test_conditions_on_passages_hold_for_one_passage_together(index):
    text = "PLAN: fever\n\nDIET: tea"
    add(index, prepare(Document("a", text), [mention(text, "fever", FEVER)]))
    about = Filters(entities=(FEVER.code,))
    assert index.ids(Filters.of({"aspect": "plan"}) & about) == ["a"]
    assert index.ids(Filters.of({"aspect": "diet"}) & about) == []
    found = index.lexical([Clause("zebra", TEXT, "not")], 5, Filters.of({"aspect": "diet"}))
    assert [index.passages([f.number])[f.number].entry.text for f in found] == ["DIET: tea"]


def test_filters_know_of_changes(index):
    add(index, note("a", patient="p1"), note("b", patient="p2"))
    chosen = Filters.of({"patient": "p1"})
    assert by_words(index, "fever", filters=chosen) == ["a"]
    add(index, note("a", patient="p2"), note("c", patient="p1"))
    assert by_words(index, "fever", filters=chosen) == index.ids(chosen) == ["c"]
    remove(index, "c")
    assert by_words(index, "fever", filters=chosen) == index.ids(chosen) == []


@pytest.mark.parametrize("others", [20, 600])
def test_the_best_that_pass_are_found_however_many_better_ones_do_not(index, others):
    """Six of 66 are more than what is filtered by the index of words itself (2 %), six of 606 are fewer."""
    better = [note(f"x{i}", "fever fever fever", unit(1, i / 1e4), patient="p1", ward="W") for i in range(others)]
    worse = [
        note(f"n{i}", "fever and " + "cough " * (i + 2), unit(0.1, 1 + i), patient="p2", date="2023-05", ward="V")
        for i in range(6)
    ]
    add(index, *better, *worse)
    assert (engine.NARROW * (others + 6) > 6) == (others == 600)
    for asked in ({"patient": "p2"}, {"date": "2023"}, ["ward!=w"], {"document": [f"n{i}" for i in range(6)]}):
        chosen = Filters.of(asked)
        assert by_words(index, "fever", k=3, filters=chosen) == ["n0", "n1", "n2"]
        assert by_words(index, "fever", k=50, filters=chosen) == [f"n{i}" for i in range(6)]
        assert by_words(index, "fever", k=3, filters=chosen, occur="must") == ["n0", "n1", "n2"]
        assert by_meaning(index, unit(1), 3, chosen) == ["n0", "n1", "n2"]
        assert len(by_meaning(index, unit(1), 50, chosen)) == 6


@pytest.mark.parametrize("others", [10, 400])
def test_the_best_that_pass_are_found_by_entity_and_aspect(index, others):
    def one(id, text, vector, *flags):
        return prepare(Document(id, text), [mention(text, "fever", FEVER, *flags)], [vector])

    better = [one(f"x{i}", "PLAN: fever fever", unit(1), "negated") for i in range(others)]
    worse = [one(f"n{i}", "DIET: fever" + " tea" * (i + 2), unit(0.1, 1 + i)) for i in range(3)]
    add(index, *better, *worse)
    assert (engine.NARROW * (others + 3) > 3) == (others == 400)
    for chosen in (
        Filters(entities=(FEVER.code,), without=frozenset({"negated"})),
        Filters.of({"aspect": "diet"}),
        Filters.of(["aspect!=plan"]),
    ):
        assert by_words(index, "fever", k=2, filters=chosen) == ["n0", "n1"]
        assert by_meaning(index, unit(1), 2, chosen) == ["n0", "n1"]


def test_removed_passages_do_not_take_the_place_of_others(index):
    add(index, *(note(f"x{i}", "fever fever", unit(1)) for i in range(40)), note("a", "fever and cough", unit(0.1, 1)))
    remove(index, *(f"x{i}" for i in range(40)))
    assert by_words(index, "fever", k=1) == by_meaning(index, unit(1), 1) == ["a"]


# --- sentences ---


def tale(id, *vectors, text="fever", **metadata):
    """A note of one passage, whose sentences have these vectors."""
    return prepare(Document(id, text, "", metadata), sentences=[sentences(*vectors)])


def by_sentences(index, vector, k=10, filters=ALL, clauses=()):
    return names(index, index.dense(vector, k, filters, clauses, Grain.SENTENCES))


def test_a_passage_scores_the_mean_of_its_sentences(index):
    one, two = unit(1), unit(0, 1)
    add(index, tale("a", one, two), tale("b", two, two, two), tale("c", one), tale("d"), discourse=DISCOURSE)
    assert by_sentences(index, one) == ["c", "a", "b"]
    scores = [found.score for found in index.dense(one, 9, ALL, (), Grain.SENTENCES)]
    assert scores == pytest.approx([1, 0.5, 0], abs=0.01)
    assert by_meaning(index, one) == []


def test_sentences_come_back_where_they_stand(index):
    given = sentences(unit(1, 2), unit(-3, 1))
    add(index, tale("x", unit(1)), prepare(Document("a", "fever"), sentences=[given]), tale("d"), discourse=DISCOURSE)
    (number,) = [stored.number for stored in index.passages_in("a")]
    found = index.sentences([number, 999])
    assert found.keys() == {number}
    assert found[number].spans == given.spans
    assert np.abs(found[number].vectors - given.vectors).max() < 0.01
    (empty,) = [stored.number for stored in index.passages_in("d")]
    assert (index.sentences([empty])[empty].spans, index.passages_in("nobody")) == ((), [])


def test_sentences_can_come_later_and_again(index):
    add(index, note("a"), note("b"))
    assert index.encoder(Grain.SENTENCES) is None
    assert (by_sentences(index, unit(1)), index.sentences([1, 2])) == ([], {})
    assert len(index.without_vectors(9, 0, Grain.SENTENCES)) == 2
    with index.writing() as writer:
        writer.set_encoder(DISCOURSE, Grain.SENTENCES)
        writer.set_sentences({1: sentences(unit(1))})
        writer.commit()
        assert [stored.number for stored in index.without_vectors(9, 0, Grain.SENTENCES)] == [2]
        assert by_sentences(index, unit(1)) == ["a"]
        writer.set_sentences({1: sentences(unit(0, 1)), 2: sentences(unit(1), unit(1))})
        writer.commit()
    assert index.without_vectors(9, 0, Grain.SENTENCES) == []
    assert by_sentences(index, unit(1)) == ["b", "a"]
    stats = index.stats()
    assert (stats.sentences, stats.passages_with_sentences, stats.discourse) == (3, 2, DISCOURSE)


def test_sentences_of_another_model_are_dropped_and_vectors_of_passages_are_not(index):
    both = prepare(Document("a", "fever"), (), [unit(1)], sentences=[sentences(unit(1))])
    add(index, both, discourse=DISCOURSE)
    other = EncoderIdentity("other", "89ab", 8, "/models/other")
    with index.writing() as writer:
        writer.set_encoder(other, Grain.SENTENCES)
        writer.commit()
    assert (index.encoder(Grain.SENTENCES), index.stats().sentences, by_sentences(index, unit(1))) == (other, 0, [])
    assert (index.encoder(), by_meaning(index, unit(1))) == (ENCODER, ["a"])


def test_sentences_of_equal_documents_are_known(index):
    one = tale("a", unit(1), unit(0, 1))
    add(index, one, discourse=DISCOURSE)
    (found,) = index.sentences_of(one.content)
    assert found.spans == one.sentences[0].spans
    assert index.sentences_of(b"other") is None
    remove(index, "a")
    assert index.sentences_of(one.content) is None


def test_sentences_that_were_removed_or_replaced_are_not_found(index):
    add(index, tale("a", unit(1)), tale("b", unit(1)), tale("c", unit(1)), discourse=DISCOURSE)
    remove(index, "a")
    add(index, tale("b", unit(0, 1), text="rash"))
    assert by_sentences(index, unit(1)) == ["c", "b"]
    assert index.stats().sentences == 2


def test_sentences_are_found_with_filters_and_words(index):
    better = [tale(f"x{i}", unit(1), unit(1), patient="p1") for i in range(30)]
    worse = [tale(f"n{i}", unit(0.2, 1 + i), text="cough", patient="p2") for i in range(3)]
    add(index, *better, *worse, discourse=DISCOURSE)
    assert by_sentences(index, unit(1), 2, Filters.of({"patient": "p2"})) == ["n0", "n1"]
    assert by_sentences(index, unit(1), 2, clauses=[Clause("cough", TEXT, "must")]) == ["n0", "n1"]
    assert by_sentences(index, unit(1), 2, clauses=[Clause("fever", TEXT, "not")]) == ["n0", "n1"]


def test_half_a_query_is_compared_with_that_half(index):
    """Where the query is 0, the bits of vectors say nothing."""
    chosen = np.random.default_rng(3)
    vectors = chosen.normal(size=(3000, 8)).astype(np.float32)
    add(index, *(tale(f"n{i}", unit(*vector)) for i, vector in enumerate(vectors)), discourse=DISCOURSE)
    query = unit(*vectors[7])
    query[4:] = 0
    scores = np.array([unit(*vector) for vector in vectors]) @ query
    best = [f"n{i}" for i in np.argsort(-scores)[:5]]
    assert len(set(by_sentences(index, query, 5)) & set(best)) >= 4


# --- what is there ---

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


@pytest.mark.parametrize("max_words", [3, 250])
def test_documents_come_back_to_the_character(index, max_words):
    add(index, *(prepare(document, max_words=max_words) for document in DOCUMENTS))
    assert list(index.documents()) == DOCUMENTS
    assert [index.document(document.id) for document in DOCUMENTS] == DOCUMENTS
    assert index.ids(ALL) == [document.id for document in DOCUMENTS]
    remove(index, "between")
    assert [document.id for document in index.documents()] == [d.id for d in DOCUMENTS if d.id != "between"]


def test_passages_come_back_as_they_were(index):
    text = DOCUMENTS[4].text
    mentions = [mention(text, "Rest", FEVER, "negated", "historical"), mention(text, "Tea", ASTHMA)]
    given = [prepare(DOCUMENTS[4], mentions), *(prepare(document, max_words=7) for document in DOCUMENTS[5:])]
    add(index, *given)
    every = index.passages(range(1, 2000))
    assert [stored.entry for _, stored in sorted(every.items())] == [e for one in given for e in one.entries]
    assert [number for number, stored in every.items()] == [stored.number for stored in every.values()]
    for stored in every.values():
        document = index.document(stored.entry.passage.document)
        assert document[stored.entry.passage.span] == stored.entry.text
        assert (stored.title, stored.metadata) == (document.title, document.metadata)


def test_neighbours_are_of_the_same_document(index):
    parts = [f"PLAN: Part {i}.\n\nDIET: Part {i}." for i in range(3)]
    add(index, note("x", "other"), Document("a", "\n\n".join(parts)), note("y", "other"))
    every = [n for n, stored in index.passages(range(20)).items() if stored.entry.passage.document == "a"]
    assert len(every) == 6
    assert [one.number for one in index.neighbours(every[2], 1)] == [every[1], every[3]]
    assert [one.number for one in index.neighbours(every[0], 2)] == every[1:3]
    assert [one.number for one in index.neighbours(every[5], 9)] == every[:5]
    assert index.neighbours(every[0], 0) == []
    (near,) = index.neighbours(every[5], 1)
    assert near == index.passages([near.number])[near.number]


def test_documents_come_in_the_order_in_which_they_were_added(index):
    add(index, note("z"), note("m"))
    add(index, note("a"))
    add(index, note("z", "rash"))
    assert [document.id for document in index.documents()] == index.ids(ALL) == ["m", "a", "z"]


def test_values_come_with_the_number_of_documents(index):
    fill(index)
    assert index.values("patient", 10) == [("p2", 2), ("P1", 1), ("p1", 1)]
    assert index.values("type", 10) == [("letter", 2), ("discharge summary", 1)]
    assert index.values("patient", 1) == [("p2", 2)]
    assert index.values("nothing", 10) == []
    assert index.values(ASPECT, 10) == [("diet", 2), ("plan", 2)]
    remove(index, "c", "d")
    assert index.values("patient", 10) == [("P1", 1), ("p1", 1)]


def test_an_aspect_counts_once_for_a_document(index):
    add(index, Document("a", "PLAN: Rest.\n\nDIET: Tea.\n\nPLAN: More rest."))
    assert index.values(ASPECT, 10) == [("diet", 1), ("plan", 1)]


@pytest.mark.parametrize("name", ["day", "#day", "month", "Ward", "größe", "a=b"])
def test_metadata_may_have_any_name(index, name):
    add(index, prepare(Document("a", "fever", "", {name: "Monday"})), note("b"))
    assert by_words(index, "fever") == ["a", "b"]
    assert index.notices() == []
    for chosen in (Filters.of({name: "Monday"}), Filters.of({name: "monday"})):
        assert by_words(index, "fever", filters=chosen) == index.ids(chosen) == ["a"]
    assert index.ids(Filters.of({"date": "2023"})) == []


def test_metadata_is_not_taken_for_the_id(index):
    add(index, note("a", vector=unit(1)), note("b", vector=unit(1), document="a"))
    chosen = Filters.of({"document": "a"})
    assert by_words(index, "fever", filters=chosen) == by_meaning(index, unit(1), filters=chosen) == ["a"]
    assert index.ids(chosen) == ["a"]


def test_stats_count_what_is_there(index):
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


# --- any collection ---

WORDS = ["fever", "cough", "rash", "asthma", "gout", "pain"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
sections = st.lists(st.tuples(st.sampled_from(["PLAN", "DIET", "NOTE"]), texts.filter(bool)), max_size=3)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "patient": st.sampled_from(["p1", "P1", "p2"]),
        "date": st.sampled_from(["2023", "2023-02", "2023-02-14", "2024-01-01", "unknown"]),
        "tags": st.lists(st.sampled_from(["x", "Y", "z"]), max_size=2),
    },
)
vectors = st.lists(st.integers(-3, 3), min_size=4, max_size=4).filter(any)
marks = st.sets(st.sampled_from(["negated", "family", "historical"]))
documents = st.tuples(st.sampled_from("abcdef"), sections, metadata, marks, st.lists(vectors, min_size=3, max_size=3))
changes = st.lists(st.lists(documents | st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=1, max_size=4)
filters_ = st.builds(
    lambda given, excluded, about: Filters.of(given) & Filters.of(excluded) & about,
    st.fixed_dictionaries(
        {},
        optional={
            "patient": st.sampled_from(["p1", ["p1", "p2"]]),
            "date": st.sampled_from(["2023", "2023-02..", "..2023-02-14", ["2023-02-14", "2024.."]]),
            "tags": st.sampled_from(["y", ["x", "z"]]),
            "aspect": st.sampled_from(["plan", ["plan", "diet"]]),
            "document": st.sampled_from(["a", ["b", "c", "d"]]),
        },
    ),
    st.lists(st.sampled_from(["patient!=p1", "tags!=x", "aspect!=plan", "document!=a"]), max_size=1),
    st.just(ALL) | marks.map(lambda flags: Filters(entities=(FEVER.code,), without=frozenset(flags))),
)
clauses_ = st.lists(
    st.builds(
        Clause,
        st.sampled_from([*WORDS, "fever cough"]),
        st.sampled_from([TEXT, {"text": 1.0, "heading": 2.0}]),
        st.sampled_from(["should", "should", "must", "not"]),
    ),
    max_size=3,
)


def made(id, parts, fields, flags, coordinates):
    text = "\n\n".join(f"{heading}: {words}" for heading, words in parts)
    mentions = [mention(text, "fever", FEVER, *sorted(flags))] if "fever" in text else []
    one = prepare(Document(id, text, "", fields), mentions)
    given = [unit(*v) for v in coordinates[: len(one.entries)]]
    some = [sentences(*given[: i + 1]) for i in range(len(given))]  # the first passage has one, the second two ...
    return prepare(one.document, mentions, given, sentences=some)


narrow = st.sampled_from([0.0, 2.0])  # filters are applied by the engine of words never, or always
questions = st.lists(st.tuples(filters_, clauses_, st.integers(1, 12), vectors, narrow), min_size=4, max_size=4)


@given(changes, questions)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_the_engine_finds_what_looking_at_everything_finds(tmp_path_factory, steps, asked):
    index, expected = EmbeddedIndex(tmp_path_factory.mktemp("library"), create=True), ReferenceIndex()
    for one in (index, expected):
        for step in steps:
            with one.writing() as writer:
                writer.set_encoder(ENCODER)
                writer.set_encoder(DISCOURSE, Grain.SENTENCES)
                for change in step:
                    if isinstance(change, str):
                        writer.remove([change])
                    else:
                        writer.add(made(*change))
                writer.commit()
    for chosen, clauses, k, vector, share in asked:
        assert index.ids(chosen) == expected.ids(chosen)
        assert list(index.documents(chosen)) == list(expected.documents(chosen))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "NARROW", share)
            same_by_words(index, expected, chosen, clauses, k)
        for grain in Grain:
            same_by_meaning(index, expected, chosen, clauses, k, unit(*vector), grain)
    index.close()


def same_by_words(index, expected, chosen, clauses, k):
    """Scores are compared with those of the engine itself, which counts removed passages until it forgets them."""
    every = index.lexical(clauses, 100, ALL)
    assert {f.number for f in every} == {f.number for f in expected.lexical(clauses, 100, ALL)}
    passing = {f.number for f in expected.lexical(clauses, 100, chosen)}
    found = index.lexical(clauses, k, chosen)
    assert {f.number for f in found} <= passing
    best = [f.score for f in every if f.number in passing][:k]
    assert [f.score for f in found] == pytest.approx(best, abs=1e-4)


def same_by_meaning(index, expected, chosen, clauses, k, query, grain):
    found, best = index.dense(query, k, chosen, clauses, grain), expected.dense(query, 100, chosen, clauses, grain)
    scores = {f.number: f.score for f in best}
    assert len(found) == min(k, len(best)) == len({f.number for f in found})
    assert [f.score for f in found] == pytest.approx([f.score for f in best[:k]], abs=0.02)
    assert [f.score for f in found] == pytest.approx([scores[f.number] for f in found], abs=0.02)


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=1, max_size=12), clauses_)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_scores_are_those_of_bm25(tmp_path_factory, given, clauses):
    index, expected = EmbeddedIndex(tmp_path_factory.mktemp("library"), create=True), ReferenceIndex()
    for one in (index, expected):
        add(one, *(note(f"n{i}", " ".join(words)) for i, words in enumerate(given)))
    found = index.lexical(clauses, 20, ALL)
    assert {f.number: f.score for f in found} == pytest.approx(
        {f.number: f.score for f in expected.lexical(clauses, 20, ALL)}, abs=1e-4
    )
    index.close()
