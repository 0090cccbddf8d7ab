"""Counts under filters, and a part of an index that knows nothing of the rest: on every engine."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import ENCODER, ReferenceIndex, mention, prepare, unit

from capr.annotate import Concept
from capr.documents import CaprError, Document
from capr.index import Clause, EmbeddedIndex, Filters, Part, Patient
from capr.index.filters import ASPECT, DAY, ENTITY, Condition

ALL = Filters()
FEVER = Concept("MESH:D005334", "symptom", "Fever")
ASTHMA = Concept("MESH:D001249", "disease", "Asthma")
SECRET = Concept("MESH:D015658", "disease", "HIV Infections")


def note(id, text, concepts=(), vector=None, **metadata):
    found = [mention(text, concept.name.lower(), concept) for concept in concepts]
    return prepare(Document(id, text, f"Note {id}", metadata), found, None if vector is None else [vector])


def fill(index):
    with index.writing() as writer:
        writer.set_encoder(ENCODER)
        writer.add(note("a1", "PLAN: fever at night.", [FEVER], unit(1), patient="A", date="2024-03-05", type="Letter"))
        writer.add(
            note("a2", "DIET: tea for asthma.", [ASTHMA], unit(2), patient="A", date="2023-01-01", source="east")
        )
        writer.add(
            note("b1", "PLAN: hiv infections.", [SECRET], unit(3), patient="B", date="2024-03-09", type="Letter")
        )
        writer.add(note("c1", "no heading, fever", [FEVER], patient="C"))
        writer.commit()
    return index


@pytest.fixture
def part(index):
    return Part(fill(index), Filters.of({"patient": ["A", "C"]}))


def test_values_count_what_passes(index):
    fill(index)
    letters = Filters.of({"type": "letter"})
    assert index.values("patient", 9, letters) == [("A", 1), ("B", 1)]
    assert index.values("patient", 1, letters) == [("A", 1)]
    assert index.values("patient", 9, Filters.of({"aspect": "plan"})) == [("A", 1), ("B", 1)]
    assert index.values(ASPECT, 9, Filters.of({"patient": "A"})) == [("diet", 1), ("plan", 1)]
    assert index.values(DAY, 9, Filters.of({"patient": "A"})) == [("2023-01-01", 1), ("2024-03-05", 1)]
    assert index.values("nothing", 9, letters) == []
    assert index.values("patient", 9, Filters.of({"type": "none"})) == []


def test_values_are_spelled_as_documents_do(index):
    with index.writing() as writer:
        writer.add(note("a", "tea", patient="A", type=" LETTER"))
        writer.add(note("b", "tea", patient="B", type="Letter"))
        writer.commit()
    assert index.spelled("type", ["letter"]) == {"letter": "LETTER"}
    assert index.spelled("type", ["letter", "note"], Filters.of({"patient": "B"})) == {"letter": "Letter"}


def test_patients_have_their_days(index):
    fill(index)
    every = [Patient("A", 2, "2023-01-01", "2024-03-05"), Patient("B", 1, "2024-03-09", "2024-03-09"), Patient("C", 1)]
    assert index.patients() == every
    assert index.patients(Filters.of({"date": "2024"})) == [Patient("A", 1, "2024-03-05", "2024-03-05"), every[1]]


def test_nobody_has_a_date(index):
    with index.writing() as writer:
        writer.add(note("a", "tea", patient="A"))
        writer.commit()
    assert index.patients() == [Patient("A", 1)]


def test_concepts_that_are_mentioned(index):
    fill(index)
    assert index.mentioned() == {FEVER.code, ASTHMA.code, SECRET.code}
    assert index.mentioned(Filters.of({"patient": "A"})) == {FEVER.code, ASTHMA.code}


def test_stats_of_what_passes(index):
    fill(index)
    found = index.stats(Filters.of({"patient": "A"}))
    assert (found.documents, found.patients, found.passages, found.mentions, found.vectors) == (2, 1, 2, 2, 2)
    assert found.characters == len("PLAN: fever at night.DIET: tea for asthma.")
    assert dict(found.fields) == {"patient": 2, "date": 2, "type": 1, "source": 1}
    assert not found.disk


def test_a_part_finds_only_its_own(part):
    def found(words):
        numbers = [one.number for one in part.lexical([Clause(words, {"text": 1.0})], 9, ALL)]
        return {stored.entry.passage.document for stored in part.passages(numbers).values()}

    assert found("fever") == {"a1", "c1"}
    assert found("hiv") == found("infections") == set()
    dense = part.dense(unit(3), 9, ALL)
    assert {stored.entry.passage.document for stored in part.passages([f.number for f in dense]).values()} == {
        "a1",
        "a2",
    }


def test_what_others_say_does_not_weigh(part, index):
    assert index.rarity(["hiv"])[0] > 0
    assert part.rarity(["hiv", "zebra"]) == [0, 0]
    assert part.rarity(["fever"]) == index.rarity(["fever"], Filters.of({"patient": ["A", "C"]}))
    assert part.rarity(["fever"])[0] == pytest.approx(np.log(1 + 1.5 / 2.5))
    with index.writing() as writer:
        writer.add(note("b2", "fever", patient="B"))
        writer.commit()
    assert part.rarity(["fever"])[0] == pytest.approx(np.log(1 + 1.5 / 2.5))


def test_a_part_has_no_other_document(part):
    assert part.document("b1") is part.document("none") is None
    assert part.digests(["b1", "a1"]).keys() == {"a1"}
    assert [document.id for document in part.documents()] == list(part.ids(ALL)) == ["a1", "a2", "c1"]
    assert part.ids(Filters.of({"patient": "B"})) == []
    assert list(part.passages_in("b1")) == []
    assert len(part.passages_in("a1")) == 1


def test_a_part_has_no_other_passage(part, index):
    (secret,) = index.passages_in("b1")
    (own,) = index.passages_in("a1")
    both = [secret.number, own.number]
    assert part.passages(both).keys() == part.groups(both, "patient").keys() == {own.number}
    assert part.passing(both, ALL) == {own.number}
    assert part.neighbours(secret.number, 3) == []
    assert part.sentences(both).keys() <= {own.number}


def test_a_part_counts_only_its_own(part):
    assert [one.patient for one in part.patients()] == ["A", "C"]
    assert part.mentioned() == {FEVER.code, ASTHMA.code}
    assert part.stats().documents == 3
    assert part.values("type", 9) == [("letter", 1)]
    assert part.has("source")
    assert not part.has("ward")


def test_a_field_that_only_others_have_is_none(index):
    fill(index)
    assert not Part(index, Filters.of({"patient": "C"})).has("type")


def test_a_part_cannot_be_changed(part):
    with pytest.raises(CaprError, match="cannot be changed"):
        part.writing()


@pytest.mark.parametrize("filters", [Filters.of({"aspect": "plan"}), Filters((Condition(ENTITY, frozenset("x")),))])
def test_a_part_is_made_of_whole_documents(index, filters):
    with pytest.raises(CaprError, match="whole documents"):
        Part(index, filters)


WORDS = ["fever", "asthma", "tea", "PLAN: rest", "DIET: soup"]
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "patient": st.sampled_from("ABC"),
        "date": st.sampled_from(["2023-01-05", "2023-02", "2024", "soon"]),
        "type": st.sampled_from(["Letter", "Note"]),
    },
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "patient": st.lists(st.sampled_from("ABCD"), max_size=2),
        "date": st.sampled_from(["2023", "2023-02..", "..2023-01-05"]),
        "type!": st.just("letter"),
        "aspect": st.just("plan"),
    },
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(WORDS), METADATA), max_size=8), FILTERS)
def test_both_engines_count_alike(tmp_path_factory, documents, given):
    filters = Filters.of(given)
    engines = [ReferenceIndex(), EmbeddedIndex(tmp_path_factory.mktemp("engines") / "library", create=True)]
    found = []
    for engine in engines:
        with engine.writing() as writer:
            for number, (text, metadata) in enumerate(documents):
                writer.add(note(f"d{number}", text, **metadata))
            writer.commit()
        names = ("patient", "type", ASPECT, DAY)
        found.append((
            [engine.values(name, 99, filters) for name in names], engine.patients(filters),
            engine.stats(filters).documents, engine.passing(range(1, 20), filters),
        ))  # fmt: skip
        engine.close()
    assert found[0] == found[1]
    assert np.all([len(values) <= len(documents) for values in found[0][0]])
