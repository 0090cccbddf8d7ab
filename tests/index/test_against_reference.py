"""The built-in engine finds the same as the reference engine, which scans everything, in any collection."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capr.documents import Document
from capr.index import PASSAGES, SENTENCES, Clause, Filters
from capr.index.embedded import queries
from capr.index.embedded.engine import EmbeddedIndex
from capr.index.filters import ASPECT, DAY
from capr.testing import ReferenceIndex
from capr.testing.examples import (
    ALL,
    DISCOURSE,
    ENCODER,
    FEVER,
    TEXT,
    add,
    keys,
    mention,
    note,
    prepare,
    sentences,
    unit,
)
from capr.testing.parts import record

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
    lambda included, excluded, entities: Filters.of(included) & Filters.of(excluded) & entities,
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


def make(id, parts, fields, flags, coordinates):
    text = "\n\n".join(f"{heading}: {words}" for heading, words in parts)
    mentions = [mention(text, "fever", FEVER, *sorted(flags))] if "fever" in text else []
    prepared = prepare(Document(id, text, "", fields), mentions)
    passages = [unit(*v) for v in coordinates[: len(prepared.entries)]]
    spans = [sentences(*passages[: i + 1]) for i in range(len(passages))]  # the first passage has one, the second two
    return prepare(prepared.document, mentions, passages, sentences=spans)


narrow = st.sampled_from([0.0, 2.0])  # the word index applies filters never, or always
search_arguments = st.lists(st.tuples(filters_, clauses_, st.integers(1, 12), vectors, narrow), min_size=4, max_size=4)


@given(changes, search_arguments)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_the_engine_finds_the_same_as_the_reference(tmp_path_factory, steps, searches):
    index, expected = EmbeddedIndex(tmp_path_factory.mktemp("library"), create=True), ReferenceIndex()
    for engine in (index, expected):
        for step in steps:
            with engine.writing() as writer:
                writer.set_encoder(ENCODER)
                writer.set_encoder(DISCOURSE, SENTENCES)
                for change in step:
                    if isinstance(change, str):
                        writer.remove([change])
                    else:
                        writer.add(make(*change))
                writer.commit()
    for filters, clauses, k, vector, share in searches:
        assert index.ids(filters) == expected.ids(filters)
        assert list(index.documents(filters)) == list(expected.documents(filters))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(queries, "NARROW", share)
            check_lexical(index, expected, filters, clauses, k)
        assert [*index.passages(keys(expected), filters)] == [*expected.passages(keys(expected), filters)]
        for space in (PASSAGES, SENTENCES):
            check_dense(index, expected, filters, clauses, k, unit(*vector), space)
    index.close()


def check_lexical(index, expected, filters, clauses, k):
    """Compare keys with the reference, and scores with the unfiltered search: BM25 still counts removed passages."""
    unfiltered = index.lexical(clauses, 100, ALL)
    assert {match.key for match in unfiltered} == {match.key for match in expected.lexical(clauses, 100, ALL)}
    passing = {match.key for match in expected.lexical(clauses, 100, filters)}
    matches = index.lexical(clauses, k, filters)
    assert {match.key for match in matches} <= passing
    best = [match.score for match in unfiltered if match.key in passing][:k]
    assert [match.score for match in matches] == pytest.approx(best, abs=1e-4)


def check_dense(index, expected, filters, clauses, k, query, space):
    matches, best = index.dense(query, k, filters, clauses, space), expected.dense(query, 100, filters, clauses, space)
    scores = {match.key: match.score for match in best}
    assert len(matches) == min(k, len(best)) == len({match.key for match in matches})
    assert [match.score for match in matches] == pytest.approx([match.score for match in best[:k]], abs=0.02)
    assert [match.score for match in matches] == pytest.approx([scores[match.key] for match in matches], abs=0.02)


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=1, max_size=12), clauses_)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_scores_are_those_of_bm25(tmp_path_factory, texts, clauses):
    index, expected = EmbeddedIndex(tmp_path_factory.mktemp("library"), create=True), ReferenceIndex()
    for engine in (index, expected):
        add(engine, *(note(f"n{i}", " ".join(words)) for i, words in enumerate(texts)))
    matches = index.lexical(clauses, 20, ALL)
    assert {match.key: match.score for match in matches} == pytest.approx(
        {match.key: match.score for match in expected.lexical(clauses, 20, ALL)}, abs=1e-4
    )
    index.close()


# --- counts ---

LINES = ["fever", "asthma", "tea", "PLAN: rest", "DIET: soup"]
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "patient": st.sampled_from("ABC"),
        "date": st.sampled_from(["2023-01-05", "2023-02", "2024", "soon"]),
        "type": st.sampled_from(["Letter", "Note"]),
    },
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "patient": st.lists(st.sampled_from("ABCD"), max_size=2),
        "date": st.sampled_from(["2023", "2023-02..", "..2023-01-05"]),
        "type!": st.just("letter"),
        "aspect": st.just("plan"),
    },
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(LINES), FACTS), max_size=8), CHOICES)
def test_both_engines_count_alike(tmp_path_factory, documents, conditions):
    filters = Filters.of(conditions)
    engines = [ReferenceIndex(), EmbeddedIndex(tmp_path_factory.mktemp("engines") / "library", create=True)]
    counts = []
    for engine in engines:
        with engine.writing() as writer:
            for number, (text, metadata) in enumerate(documents):
                writer.add(record(f"d{number}", text, **metadata))
            writer.commit()
        ids = [f"d{number}" for number in range(9)]
        names = ("patient", "type", ASPECT, DAY)
        values, passages = (
            [engine.values(name, 99, filters) for name in names],
            {*engine.passages(keys(engine), filters)},
        )
        count = engine.stats(filters).documents
        counts.append((values, engine.patients(filters), count, passages, engine.digests(ids, filters)))
        engine.close()
    assert counts[0] == counts[1]
    assert np.all([len(values) <= len(documents) for values in counts[0][0]])
