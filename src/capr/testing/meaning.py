"""The contract of an engine: search by vectors of passages."""

from __future__ import annotations

import numpy as np
import pytest

from capr.documents import Document
from capr.index import (
    Clause,
    Filters,
    Index,
    PassageKey,
)
from capr.index.protocol import OtherModelError
from capr.runtime.identity import EncoderIdentity
from capr.testing.examples import (
    ALL,
    ENCODER,
    TEXT,
    add,
    by_meaning,
    by_words,
    names,
    note,
    prepare,
    remove,
    unit,
)


class Meaning:
    """Tests of dense search in the space of passages."""

    def test_dense_search_ranks_by_the_dot_product(self, index: Index) -> None:
        generator = np.random.default_rng(1)
        vectors = generator.normal(size=(50, ENCODER.dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        add(index, *(note(f"n{i}", "fever", vector) for i, vector in enumerate(vectors)))
        for query in vectors[:5]:
            matches = index.dense(query, 10, ALL)
            scores = vectors @ query
            assert [match.score for match in matches] == pytest.approx(np.sort(scores)[::-1][:10], abs=0.01)
            for name, match in zip(names(index, matches), matches, strict=True):
                assert match.score == pytest.approx(scores[int(name[1:])], abs=0.01)

    def test_dense_search_omits_passages_without_a_vector(self, index: Index) -> None:
        add(index, note("a", "fever"), note("b", "rash", unit(1)))
        assert by_meaning(index, unit(1)) == ["b"]
        assert by_words(index, "fever") == ["a"]

    def test_an_empty_index_has_no_matches(self, index: Index) -> None:
        assert (index.dense(unit(1), 5, ALL), index.lexical([Clause("a", TEXT)], 5, ALL)) == ([], [])
        add(index)
        assert (index.dense(unit(1), 5, ALL), list(index.documents())) == ([], [])

    def test_a_query_with_other_dimensions_is_an_error(self, index: Index) -> None:
        add(index, note("a", "fever", unit(1)))
        with pytest.raises(OtherModelError, match=r"another model, .*8 dimensions"):
            index.dense(np.ones(5, np.float32), 9, ALL)

    def test_vectors_can_be_added_later(self, index: Index) -> None:
        add(index, prepare(Document("a", "PLAN: Rest.\n\nDIET: Tea.")), note("b", "fever", unit(1)))
        missing = list(index.without_vectors(10))
        assert [passage.entry.text for passage in missing] == ["PLAN: Rest.", "DIET: Tea."]
        assert list(index.without_vectors(1)) == missing[:1]
        assert list(index.without_vectors(1, missing[0].key)) == missing[1:]
        assert list(index.without_vectors(9, missing[0].key)) == missing[1:]
        assert list(index.without_vectors(9, PassageKey("nobody", 0))) == missing
        assert list(index.without_vectors(9, missing[1].key)) == []
        with index.writing() as writer:
            writer.set_vectors({missing[0].key: unit(0, 1), missing[1].key: unit(0, 0, 1)})
            writer.commit()
        assert index.without_vectors(10) == []
        assert [match.key for match in index.dense(unit(0, 0, 1), 1, ALL)] == [missing[1].key]
        assert index.stats().vectors == 3

    def test_a_vector_can_be_replaced(self, index: Index) -> None:
        add(index, note("a", "fever", unit(1)), note("b", "rash", unit(0, 1)))
        key = index.dense(unit(1), 1, ALL)[0].key
        with index.writing() as writer:
            writer.set_vectors({key: unit(0, 0, 1), PassageKey("nobody", 0): unit(1)})
            writer.commit()
        assert by_meaning(index, unit(1, 0, 0.5)) == ["a", "b"]
        assert by_meaning(index, unit(0, 0, 1)) == ["a", "b"]
        assert index.dense(unit(1), 1, ALL)[0].score == pytest.approx(0, abs=0.01)
        assert index.stats().vectors == 2

    def test_vectors_can_be_looked_up_by_content(self, index: Index) -> None:
        encoded = note("a", "fever", unit(1, 2))
        add(index, encoded)
        assert np.allclose(np.array(index.vectors_of(encoded.content)), [unit(1, 2)], atol=0.01)
        assert index.vectors_of(b"other") is None
        add(index, note("b", "rash"))
        assert index.vectors_of(note("b", "rash").content) is None
        remove(index, "a")
        assert index.vectors_of(encoded.content) is None

    def test_one_encoded_document_is_enough_to_look_up_the_vectors_of_its_content(self, index: Index) -> None:
        add(index, note("a"), note("b", vector=unit(1)))
        vectors = index.vectors_of(note("a").content)
        assert vectors is not None
        assert np.allclose(np.array(vectors), [unit(1)], atol=0.01)

    def test_another_encoder_drops_the_vectors_and_a_moved_one_does_not(self, index: Index) -> None:
        add(index, note("a", vector=unit(1)))
        moved = EncoderIdentity("tiny", ENCODER.digest, 8, "/elsewhere")
        add(index, encoder=moved)
        assert (index.encoder(), index.stats().vectors, by_meaning(index, unit(1))) == (moved, 1, ["a"])
        other = EncoderIdentity("other", "4567", 4, "/models/other")
        add(index, encoder=other)
        assert (index.encoder(), index.stats().vectors) == (other, 0)
        query = np.array([1, 0, 0, 0], np.float32)
        assert index.dense(query, 5, ALL) == []
        (passage,) = index.without_vectors(5)
        with index.writing() as writer:
            writer.set_vectors({passage.key: query})
            writer.commit()
        assert by_meaning(index, query) == ["a"]

    @pytest.mark.parametrize(("occur", "expected"), [("must", ["c", "d"]), ("not", ["a", "b"]), ("should", ["a", "b"])])
    def test_clauses_restrict_dense_search(self, index: Index, occur: str, expected: list[str]) -> None:
        texts = {"a": "cough", "b": "rash", "c": "fever", "d": "fever and rash"}
        add(index, *(note(id, text, unit(1, i / 10)) for i, (id, text) in enumerate(texts.items())))
        clauses = [Clause("fever", TEXT, occur)]
        assert by_meaning(index, unit(1), 2, clauses=clauses) == expected
        clauses.append(Clause("rash", TEXT, "must"))
        assert by_meaning(index, unit(1), 1, clauses=clauses) == [{"must": "d", "not": "b", "should": "b"}[occur]]

    def test_clauses_and_filters_together_restrict_dense_search(self, index: Index) -> None:
        add(
            index,
            note("a", "fever", unit(1), patient="p1"),
            note("b", "fever", unit(1, 0.1), patient="p2"),
            note("c", "rash", unit(1, 0.2), patient="p2"),
        )
        must = [Clause("fever", TEXT, "must")]
        assert by_meaning(index, unit(1), filters=Filters.of({"patient": "p2"}), clauses=must) == ["b"]
