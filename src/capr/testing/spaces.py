"""The contract of an engine: spaces of vectors, such as the space of sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from capr.documents import Document, Span
from capr.index import (
    PASSAGES,
    PIECES,
    SENTENCES,
    SPACES,
    Clause,
    FilteredIndex,
    Filters,
    Index,
    PassageKey,
    Space,
    SpaceStats,
    SpanVectors,
)
from capr.runtime.identity import EncoderIdentity, Vector
from capr.testing.examples import (
    ALL,
    DISCOURSE,
    ENCODER,
    PIECE_ENCODER,
    TEXT,
    add,
    by_meaning,
    by_sentences,
    names,
    note,
    note_with_sentences,
    prepare,
    remove,
    sentences,
    unit,
)


class Spaces:
    """Tests of several vector spaces in one index."""

    def test_a_passage_scores_the_mean_of_its_sentences(self, index: Index) -> None:
        x, y = unit(1), unit(0, 1)
        add(
            index,
            note_with_sentences("a", x, y),
            note_with_sentences("b", y, y, y),
            note_with_sentences("c", x),
            note_with_sentences("d"),
            discourse=DISCOURSE,
        )
        assert by_sentences(index, x) == ["c", "a", "b"]
        scores = [match.score for match in index.dense(x, 9, ALL, (), SENTENCES)]
        assert scores == pytest.approx([1, 0.5, 0], abs=0.01)
        assert by_meaning(index, x) == []

    def test_sentences_are_returned_with_their_spans_and_vectors(self, index: Index) -> None:
        expected = sentences(unit(1, 2), unit(-3, 1))
        add(
            index,
            note_with_sentences("x", unit(1)),
            prepare(Document("a", "fever"), sentences=[expected]),
            note_with_sentences("d"),
            discourse=DISCOURSE,
        )
        key, empty = PassageKey("a", 0), PassageKey("d", 0)
        vectors = index.span_vectors([key, PassageKey("a", 1), PassageKey("nobody", 0)])
        assert vectors.keys() == {key}
        assert vectors[key].spans == expected.spans
        assert np.abs(vectors[key].vectors - expected.vectors).max() < 0.01
        assert (index.span_vectors([empty])[empty].spans, index.passages_in("nobody")) == ((), [])

    def test_sentences_can_be_added_later_and_replaced(self, index: Index) -> None:
        add(index, note("a"), note("b"))
        assert index.encoder(SENTENCES) is None
        assert (by_sentences(index, unit(1)), index.span_vectors([PassageKey("a", 0), PassageKey("b", 0)])) == ([], {})
        assert len(index.without_vectors(9, None, SENTENCES)) == 2
        with index.writing() as writer:
            writer.set_encoder(DISCOURSE, SENTENCES)
            writer.set_vectors({PassageKey("a", 0): sentences(unit(1))}, SENTENCES)
            writer.commit()
            assert [passage.key for passage in index.without_vectors(9, None, SENTENCES)] == [PassageKey("b", 0)]
            assert by_sentences(index, unit(1)) == ["a"]
            writer.set_vectors(
                {PassageKey("a", 0): sentences(unit(0, 1)), PassageKey("b", 0): sentences(unit(1), unit(1))}, SENTENCES
            )
            writer.commit()
        assert index.without_vectors(9, None, SENTENCES) == []
        assert by_sentences(index, unit(1)) == ["b", "a"]
        stats = index.stats()
        assert (stats.sentences, stats.passages_with_sentences, stats.discourse) == (3, 2, DISCOURSE)

    def test_another_discourse_model_drops_sentence_vectors_but_no_passage_vectors(self, index: Index) -> None:
        document = prepare(Document("a", "fever"), (), [unit(1)], sentences=[sentences(unit(1))])
        add(index, document, discourse=DISCOURSE)
        other = EncoderIdentity("other", "89ab", 8, "/models/other")
        with index.writing() as writer:
            writer.set_encoder(other, SENTENCES)
            writer.commit()
        assert (index.encoder(SENTENCES), index.stats().sentences, by_sentences(index, unit(1))) == (other, 0, [])
        assert (index.encoder(), by_meaning(index, unit(1))) == (ENCODER, ["a"])

    def test_sentences_can_be_looked_up_by_content(self, index: Index) -> None:
        encoded = note_with_sentences("a", unit(1), unit(0, 1))
        add(index, encoded, discourse=DISCOURSE)
        (vectors,) = index.vectors_of(encoded.content, SENTENCES) or ()
        assert isinstance(vectors, SpanVectors)
        assert vectors.spans == (Span(0, 9), Span(10, 19))
        assert np.allclose(vectors.vectors, [unit(1), unit(0, 1)], atol=0.01)
        assert index.vectors_of(encoded.content) is None
        assert index.vectors_of(b"other", SENTENCES) is None
        remove(index, "a")
        assert index.vectors_of(encoded.content, SENTENCES) is None

    def test_removed_and_replaced_sentences_are_not_found(self, index: Index) -> None:
        add(
            index,
            note_with_sentences("a", unit(1)),
            note_with_sentences("b", unit(1)),
            note_with_sentences("c", unit(1)),
            discourse=DISCOURSE,
        )
        remove(index, "a")
        add(index, note_with_sentences("b", unit(0, 1), text="rash"))
        assert by_sentences(index, unit(1)) == ["c", "b"]
        assert index.stats().sentences == 2

    def test_filters_and_clauses_restrict_the_search_of_sentences(self, index: Index) -> None:
        better = [note_with_sentences(f"x{i}", unit(1), unit(1), patient="p1") for i in range(30)]
        worse = [note_with_sentences(f"n{i}", unit(0.2, 1 + i), text="cough", patient="p2") for i in range(3)]
        add(index, *better, *worse, discourse=DISCOURSE)
        assert by_sentences(index, unit(1), 2, Filters.of({"patient": "p2"})) == ["n0", "n1"]
        assert by_sentences(index, unit(1), 2, clauses=[Clause("cough", TEXT, "must")]) == ["n0", "n1"]
        assert by_sentences(index, unit(1), 2, clauses=[Clause("fever", TEXT, "not")]) == ["n0", "n1"]

    def test_filters_exclude_sentences_of_passages(self, index: Index) -> None:
        add(
            index,
            note_with_sentences("a", unit(1), patient="p1"),
            note_with_sentences("b", unit(1), patient="p2"),
            discourse=DISCOURSE,
        )
        keys, filters = [PassageKey("a", 0), PassageKey("b", 0)], Filters.of({"patient": "p2"})
        assert index.span_vectors(keys, SENTENCES).keys() == set(keys)
        assert index.span_vectors(keys, SENTENCES, filters).keys() == {PassageKey("b", 0)}
        assert FilteredIndex(index, filters).span_vectors(keys).keys() == {PassageKey("b", 0)}

    def test_codes_are_returned_as_they_were_set(self, index: Index) -> None:
        with index.writing() as writer:
            writer.set_encoder(PIECE_ENCODER, PIECES)
            writer.add(replace(note("a"), vectors={PIECES: [b"\x01\x02\x03\x04"]}))
            writer.add(note("b", text="cough"))
            writer.add(replace(note("c", text="rash"), vectors={PIECES: [b""]}))
            writer.commit()
        a, b, c = (PassageKey(id, 0) for id in "abc")
        assert index.codes([c, a, b, PassageKey("a", 1), PassageKey("nobody", 0)]) == {a: b"\x01\x02\x03\x04", c: b""}
        assert [passage.key for passage in index.without_vectors(9, None, PIECES)] == [b]
        assert index.stats().of(PIECES) == SpaceStats(PIECE_ENCODER, 2, 2)
        assert index.vectors_of(note("a").content, PIECES) == [b"\x01\x02\x03\x04"]
        assert index.vectors_of(note("b", text="cough").content, PIECES) is None
        assert index.dense(unit(1), 9, ALL, (), PIECES) == []
        with index.writing() as writer:
            writer.set_vectors({a: b"\x05\x06", b: b"\x07\x08"}, PIECES)
            writer.commit()
        assert index.codes([a, b]) == {a: b"\x05\x06", b: b"\x07\x08"}
        remove(index, "a")
        assert index.codes([a, b]) == {b: b"\x07\x08"}
        add(index, replace(note("b", text="pain"), vectors={PIECES: [b"\x09\x0a"]}), encoder=None)
        assert index.codes([b]) == {b: b"\x09\x0a"}

    def test_filters_exclude_codes(self, index: Index) -> None:
        with index.writing() as writer:
            writer.set_encoder(PIECE_ENCODER, PIECES)
            for id, patient in (("a", "p1"), ("b", "p2")):
                writer.add(replace(note(id, patient=patient), vectors={PIECES: [b"\x01\x02"]}))
            writer.commit()
        keys, filters = [PassageKey("a", 0), PassageKey("b", 0)], Filters.of({"patient": "p2"})
        assert index.codes(keys, PIECES, filters).keys() == {PassageKey("b", 0)}
        assert FilteredIndex(index, filters).codes(keys).keys() == {PassageKey("b", 0)}

    @pytest.mark.parametrize("space", [PASSAGES, PIECES], ids=lambda space: space.name)
    def test_a_space_without_a_model_has_no_vectors(self, index: Index, space: Space) -> None:
        vectors: dict[Space, list[Any]] = {PASSAGES: [unit(1)], PIECES: [b"\x01\x02"]}
        with index.writing() as writer:
            writer.set_encoder(ENCODER)
            writer.set_encoder(PIECE_ENCODER, PIECES)
            writer.add(replace(note("a"), vectors=vectors))
            writer.commit()
            writer.set_encoder(None, space)
            writer.set_encoder(None, SENTENCES)  # has no model
            writer.commit()
        assert (index.encoder(space), index.encoder(SENTENCES)) == (None, None)
        assert index.stats().of(space) == SpaceStats()
        assert index.vectors_of(note("a").content, space) is None
        assert (by_meaning(index, unit(1)), index.codes([PassageKey("a", 0)])) == (
            ([], {PassageKey("a", 0): b"\x01\x02"}) if space == PASSAGES else (["a"], {})
        )
        with index.writing() as writer:
            writer.set_encoder(ENCODER)
            writer.set_encoder(PIECE_ENCODER, PIECES)
            writer.commit()
        assert [passage.key for passage in index.without_vectors(9, None, space)] == [PassageKey("a", 0)]

    def test_the_zero_half_of_a_query_does_not_affect_the_ranking(self, index: Index) -> None:
        """A query with only an entity or an aspect is 0 in one half; the bits of that half mean nothing."""
        generator = np.random.default_rng(3)
        vectors = generator.normal(size=(3000, 8)).astype(np.float32)
        add(
            index,
            *(note_with_sentences(f"n{i}", unit(*vector)) for i, vector in enumerate(vectors)),
            discourse=DISCOURSE,
        )
        query = unit(*vectors[7])
        query[4:] = 0
        scores = np.array([unit(*vector) for vector in vectors]) @ query
        best = [f"n{i}" for i in np.argsort(-scores)[:5]]
        assert len(set(by_sentences(index, query, 5)) & set(best)) >= 4

    @pytest.mark.parametrize("aggregation", ["", "mean"])
    def test_a_space_needs_a_line_in_the_registry_and_nothing_else(
        self, index: Index, monkeypatch: pytest.MonkeyPatch, aggregation: Literal["", "mean"]
    ) -> None:
        titles = Space("titles", "titler", "the titles of {} have no vectors yet. Fix: capr encode {}.", aggregation)
        monkeypatch.setitem(SPACES, titles.name, titles)

        def vector(*values: float) -> Vector | SpanVectors:
            return sentences(unit(*values), unit(*values)) if aggregation else unit(*values)

        add(index, note("a", vector=unit(1)), note("b"), note("c"))
        assert index.encoder(titles) is None
        assert (index.dense(unit(1), 9, ALL, (), titles), index.stats().of(titles)) == ([], SpaceStats())
        model = EncoderIdentity("titler", "89ab", 8, "/models/titler")
        with index.writing() as writer:
            writer.set_encoder(model, titles)
            writer.add(replace(note("d"), vectors={titles: [vector(0, 1)]}))
            writer.set_vectors({PassageKey("a", 0): vector(0, 1), PassageKey("b", 0): vector(1)}, titles)
            writer.commit()
        assert names(index, index.dense(unit(1, 0.1), 9, ALL, (), titles)) == ["b", "a", "d"]
        assert names(index, index.dense(unit(0, 1), 2, ALL, (), titles)) == ["a", "d"]
        assert by_meaning(index, unit(1)) == ["a"]
        assert [passage.key for passage in index.without_vectors(9, None, titles)] == [PassageKey("c", 0)]
        assert (index.encoder(titles), index.encoder(SENTENCES)) == (model, None)
        assert index.stats().of(titles) == SpaceStats(model, 3, 6 if aggregation else 3)
        assert index.vectors_of(note("c").content, titles) is not None  # a, b and d have the same content
        remove(index, "b")
        assert names(index, index.dense(unit(1), 9, ALL, (), titles)) == ["a", "d"]
        with index.writing() as writer:
            writer.set_encoder(EncoderIdentity("other", "cdef", 8, "/models/other"), titles)
            writer.commit()
        assert index.dense(unit(1), 9, ALL, (), titles) == []
        assert by_meaning(index, unit(1)) == ["a"]
