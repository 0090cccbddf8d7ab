"""The contract of an engine: counts with filters, and parts of an index that hide all other documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from capr.annotate import Concept
from capr.documents import CaprError, Document
from capr.index import (
    FilteredIndex,
    Filters,
    Index,
    Patient,
    PreparedDocument,
)
from capr.index.filters import ASPECT, DAY, ENTITY, Condition
from capr.runtime.identity import Vector
from capr.testing.examples import (
    ALL,
    ASTHMA,
    ENCODER,
    FEVER,
    by_words,
    mention,
    names,
    prepare,
    unit,
)

SECRET = Concept("MESH:D015658", "disease", "HIV Infections")


def record(
    id: str, text: str, concepts: Sequence[Concept] = (), vector: Vector | None = None, **metadata: Any
) -> PreparedDocument:
    """Return a document with mentions of concepts."""
    mentions = [mention(text, concept.name.lower(), concept) for concept in concepts]
    return prepare(Document(id, text, f"Note {id}", metadata), mentions, None if vector is None else [vector])


def fill_records(index: Index) -> Index:
    """Add documents of three patients."""
    with index.writing() as writer:
        writer.set_encoder(ENCODER)
        writer.add(
            record("a1", "PLAN: fever at night.", [FEVER], unit(1), patient="A", date="2024-03-05", type="Letter")
        )
        writer.add(
            record("a2", "DIET: tea for asthma.", [ASTHMA], unit(2), patient="A", date="2023-01-01", source="east")
        )
        writer.add(
            record("b1", "PLAN: hiv infections.", [SECRET], unit(3), patient="B", date="2024-03-09", type="Letter")
        )
        writer.add(record("c1", "no heading, fever", [FEVER], patient="C"))
        writer.commit()
    return index


class Parts:
    """Tests of counts with filters, and of parts of an index."""

    @pytest.fixture
    def part(self, index: Index) -> Index:
        """A part with the documents of two of three patients."""
        return FilteredIndex(fill_records(index), Filters.of({"patient": ["A", "C"]}))

    def test_values_count_documents_that_meet_the_filters(self, index: Index) -> None:
        fill_records(index)
        letters = Filters.of({"type": "letter"})
        assert index.values("patient", 9, letters) == [("A", 1), ("B", 1)]
        assert index.values("patient", 1, letters) == [("A", 1)]
        assert index.values("patient", 9, Filters.of({"aspect": "plan"})) == [("A", 1), ("B", 1)]
        assert index.values(ASPECT, 9, Filters.of({"patient": "A"})) == [("diet", 1), ("plan", 1)]
        assert index.values(DAY, 9, Filters.of({"patient": "A"})) == [("2023-01-01", 1), ("2024-03-05", 1)]
        assert index.values("nothing", 9, letters) == []
        assert index.values("patient", 9, Filters.of({"type": "none"})) == []

    def test_values_have_the_spelling_of_a_document_that_meets_the_filters(self, index: Index) -> None:
        with index.writing() as writer:
            writer.add(record("a", "tea", patient="A", type=" LETTER"))
            writer.add(record("b", "tea", patient="B", type="Letter"))
            writer.commit()
        assert index.display_values("type", ["letter"]) == {"letter": "LETTER"}
        assert index.display_values("type", ["letter", "note"], Filters.of({"patient": "B"})) == {"letter": "Letter"}

    def test_patients_have_their_first_and_last_day(self, index: Index) -> None:
        fill_records(index)
        patients = [
            Patient("A", 2, "2023-01-01", "2024-03-05"),
            Patient("B", 1, "2024-03-09", "2024-03-09"),
            Patient("C", 1),
        ]
        assert index.patients() == patients
        assert index.patients(Filters.of({"date": "2024"})) == [
            Patient("A", 1, "2024-03-05", "2024-03-05"),
            patients[1],
        ]

    def test_a_patient_without_dates_has_no_days(self, index: Index) -> None:
        with index.writing() as writer:
            writer.add(record("a", "tea", patient="A"))
            writer.commit()
        assert index.patients() == [Patient("A", 1)]

    def test_mentioned_returns_the_concepts_of_passages_that_meet_the_filters(self, index: Index) -> None:
        fill_records(index)
        assert index.mentioned_codes() == {FEVER.code, ASTHMA.code, SECRET.code}
        assert index.mentioned_codes(Filters.of({"patient": "A"})) == {FEVER.code, ASTHMA.code}

    def test_stats_count_documents_that_meet_the_filters(self, index: Index) -> None:
        fill_records(index)
        stats = index.stats(Filters.of({"patient": "A"}))
        assert (stats.documents, stats.patients, stats.passages, stats.mentions, stats.vectors) == (2, 1, 2, 2, 2)
        assert stats.characters == len("PLAN: fever at night.DIET: tea for asthma.")
        assert dict(stats.fields) == {"patient": 2, "date": 2, "type": 1, "source": 1}
        assert not stats.disk

    def test_a_part_finds_only_its_own_documents(self, part: Index) -> None:
        assert set(by_words(part, "fever", k=9)) == {"a1", "c1"}
        assert by_words(part, "hiv", k=9) == by_words(part, "infections", k=9) == []
        matches = part.dense(unit(3), 9, ALL)
        assert set(names(part, matches)) == {"a1", "a2"}

    def test_rarity_in_a_part_ignores_other_documents(self, part: Index, index: Index) -> None:
        assert index.rarity(["hiv"])[0] > 0
        assert part.rarity(["hiv", "zebra"]) == [0, 0]
        assert part.rarity(["fever"]) == index.rarity(["fever"], Filters.of({"patient": ["A", "C"]}))
        assert part.rarity(["fever"])[0] == pytest.approx(np.log(1 + 1.5 / 2.5))
        with index.writing() as writer:
            writer.add(record("b2", "fever", patient="B"))
            writer.commit()
        assert part.rarity(["fever"])[0] == pytest.approx(np.log(1 + 1.5 / 2.5))

    def test_a_part_hides_other_documents(self, part: Index) -> None:
        assert part.document("b1") is part.document("none") is None
        assert part.digests(["b1", "a1"]).keys() == {"a1"}
        assert [document.id for document in part.documents()] == list(part.ids(ALL)) == ["a1", "a2", "c1"]
        assert part.ids(Filters.of({"patient": "B"})) == []
        assert list(part.passages_in("b1")) == []
        assert len(part.passages_in("a1")) == 1

    def test_a_part_hides_other_passages(self, part: Index, index: Index) -> None:
        (secret,) = index.passages_in("b1")
        (own,) = index.passages_in("a1")
        keys = [secret.key, own.key]
        assert part.passages(keys).keys() == {own.key}
        assert part.passages(keys, Filters.of({"patient": "B"})) == {}
        assert part.patients_of(["b1", "a1"]) == {"a1": "A"}
        assert part.span_vectors(keys).keys() <= {own.key}

    def test_a_part_counts_only_its_own_documents(self, part: Index) -> None:
        assert [patient.patient for patient in part.patients()] == ["A", "C"]
        assert part.mentioned_codes() == {FEVER.code, ASTHMA.code}
        assert part.stats().documents == 3
        assert part.values("type", 9) == [("letter", 1)]
        assert part.has("source")
        assert not part.has("ward")

    def test_a_part_hides_fields_that_only_other_documents_have(self, index: Index) -> None:
        fill_records(index)
        assert not FilteredIndex(index, Filters.of({"patient": "C"})).has("type")

    def test_a_part_cannot_be_changed(self, part: Index) -> None:
        with pytest.raises(CaprError, match="cannot be changed"):
            part.writing()

    @pytest.mark.parametrize("filters", [Filters.of({"aspect": "plan"}), Filters((Condition(ENTITY, frozenset("x")),))])
    def test_a_part_consists_of_whole_documents(self, index: Index, filters: Filters) -> None:
        with pytest.raises(CaprError, match="whole documents"):
            FilteredIndex(index, filters)
