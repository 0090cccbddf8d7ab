"""The vector index: codes, approximate search and files."""

import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Document
from capr.index import PASSAGES, Clause
from capr.index.embedded import vectors as module
from capr.index.embedded.derived import DamagedError, load_state, save_state
from capr.index.embedded.vectors import VectorIndex, VectorIndexWriter, decode, encode
from capr.testing.examples import ENCODER, prepare

DIMENSIONS = 256


def clustered(count, seed=3, clusters=40, inner=48):
    """Return vectors of length 1 like those of encoders: clustered, off the origin, and in few directions."""
    shared = np.random.default_rng(0)
    centres = shared.normal(size=(clusters, DIMENSIONS)) + 0.7
    directions = shared.normal(size=(inner, DIMENSIONS)) / np.sqrt(inner)
    generator = np.random.default_rng(seed)
    vectors = (
        centres[generator.integers(clusters, size=count)] + 0.7 * generator.normal(size=(count, inner)) @ directions
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def append(folder, vectors, first=1, through=None, source="e"):
    writer = VectorIndexWriter(folder, source, DIMENSIONS)
    numbers = range(first, first + len(vectors))
    writer.append(numbers, [encode(vector) for vector in vectors], through or numbers[-1])
    return writer


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "vectors"


def allowed(count, numbers=None):
    mask = np.zeros(count + 1, bool)
    mask[1:] = numbers is None
    if numbers is not None:
        mask[numbers] = True
    return mask


def numbers_of(matches):
    return [match.number for match in matches]


def nearest(vectors, query, k, mask=None):
    scores = vectors @ query
    if mask is not None:
        scores = np.where(mask[1:], scores, -np.inf)
    return [int(i) + 1 for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > -np.inf]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40))
def test_a_code_differs_by_at_most_half_a_step(values):
    vector = np.array(values, np.float32)
    step = max(np.abs(vector).max(), 1e-12) / 127
    assert len(encode(vector)) == 4 + len(vector)
    assert np.abs(decode(encode(vector)) - vector).max() <= 0.5001 * step


def test_codes_of_codes_are_the_same():
    for vector in clustered(50):
        assert encode(decode(encode(vector))) == encode(vector)


def test_dot_products_of_codes_are_near_the_true_ones(folder):
    vectors = clustered(500)
    append(folder, vectors)
    for match in VectorIndex(folder).search(vectors[0], 500, allowed(500), False):
        assert match.score == pytest.approx(float(vectors[match.number - 1] @ vectors[0]), abs=0.01)


def test_few_vectors_are_searched_exactly(folder):
    vectors = clustered(300)
    append(folder, vectors)
    index = VectorIndex(folder)
    decoded = np.array([decode(encode(vector)) for vector in vectors])
    seventh = allowed(300, np.arange(1, 300, 7))
    for query in clustered(10, seed=4):
        assert numbers_of(index.search(query, 10, allowed(300), False)) == nearest(decoded, query, 10)
        assert numbers_of(index.search(query, 10, seventh, True)) == nearest(decoded, query, 10, seventh)
    assert index.search(vectors[0], 10, allowed(300, []), True) == []
    assert len(index.search(vectors[0], 1000, allowed(300), False)) == 300


@pytest.fixture
def approximate(monkeypatch):
    """Compare only a few vectors by their codes, as in an index of millions."""
    monkeypatch.setattr(module, "MAX_UNSCREENED", 50)
    monkeypatch.setattr(module, "MIN_RESCORED", 300)
    calls = []
    original = VectorIndex._nearest
    monkeypatch.setattr(VectorIndex, "_nearest", lambda *arguments: calls.append(1) or original(*arguments))
    yield calls
    assert calls


@pytest.mark.parametrize("half", ["first", "second"])
def test_the_bits_of_the_zero_half_of_a_query_are_not_compared(folder, approximate, half):
    """The bits of a half that is 0 mean nothing, and would outweigh the bits of the other half."""
    vectors = clustered(4000)
    append(folder, vectors)
    index = VectorIndex(folder)
    middle = vectors.shape[1] // 2
    hits = 0
    queries = clustered(50, seed=6)
    for query in queries:
        query[slice(middle, None) if half == "first" else slice(middle)] = 0
        hits += len({*numbers_of(index.search(query, 10, allowed(4000), False))} & {*nearest(vectors, query, 10)})
    assert hits >= 0.97 * 10 * len(queries)
    zeros = np.zeros(vectors.shape[1], np.float32)
    assert len(index.search(zeros, 10, allowed(4000), False)) == 10


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 0.15])
def test_most_of_the_true_neighbours_are_found(folder, approximate, share, filtered):
    count = 4000
    vectors = clustered(count)
    append(folder, vectors[:1500])
    append(folder, vectors[1500:], 1501)
    index = VectorIndex(folder)
    passing = np.flatnonzero(np.random.default_rng(5).random(count) < share) + 1
    mask = allowed(count, passing)
    hits = 0
    queries = clustered(100, seed=6)
    for query in queries:
        matches = index.search(query, 10, mask, filtered)
        assert len(matches) == 10
        assert all(mask[match.number] for match in matches)
        assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
        hits += len({*numbers_of(matches)} & {*nearest(vectors, query, 10, mask)})
    assert hits / (10 * len(queries)) >= 0.98


def test_removed_vectors_are_skipped(folder, approximate):
    vectors = clustered(2000)
    append(folder, vectors)
    query = clustered(1, seed=6)[0]
    removed = nearest(vectors, query, 1000)
    mask = allowed(2000)
    mask[removed] = False
    numbers = numbers_of(VectorIndex(folder).search(query, 10, mask, False))
    assert len(numbers) == 10
    assert not {*numbers} & {*removed}


def test_a_narrow_filter_finds_distant_vectors(folder, approximate):
    vectors = clustered(2000)
    append(folder, vectors)
    index = VectorIndex(folder)
    index.search(vectors[0], 5, allowed(2000), False)
    far = nearest(vectors, vectors[0], 2000)[-40:]
    assert {*numbers_of(index.search(vectors[0], 100, allowed(2000, far), True))} == {*far}


def test_equal_vectors_are_in_the_order_of_their_numbers(folder):
    append(folder, np.repeat(clustered(1), 20, axis=0))
    assert numbers_of(VectorIndex(folder).search(clustered(1)[0], 20, allowed(20), False)) == [*range(1, 21)]


def test_an_index_may_be_empty(folder):
    writer = VectorIndexWriter(folder, "e", DIMENSIONS)
    writer.append([], [], 7)
    index = VectorIndex(folder)
    assert (len(index), index.state.through, index.damaged()) == (0, 7, [])
    append(folder, clustered(5), through=12)
    assert (len(VectorIndex(folder)), VectorIndex(folder).state.through) == (5, 12)
    assert VectorIndex(folder).damaged() == []


def test_bytes_that_a_crash_left_are_overwritten(folder):
    vectors = clustered(60)
    append(folder, vectors[:40])
    for file in folder.iterdir():
        if file.name.partition("-")[0] in ("numbers", "codes", "scales", "bits"):
            with file.open("ab") as end:
                end.write(b"garbage" * 100)
    (folder / "state.json.part").write_text("{half")
    assert VectorIndex(folder).damaged() == []
    append(folder, vectors[40:], 41)
    index = VectorIndex(folder)
    assert (len(index), index.damaged()) == (60, [])
    assert numbers_of(index.search(vectors[50], 1, allowed(60), False)) == [51]
    assert numbers_of(index.search(vectors[3], 1, allowed(60), False)) == [4]


@pytest.mark.parametrize("failing_call", [1, 2, 3, 4, 5])
def test_a_failed_append_leaves_the_old_index_intact(folder, monkeypatch, failing_call):
    vectors = clustered(60)
    append(folder, vectors[:40])
    calls = []
    write = os.write

    def write_or_fail(descriptor, data):
        calls.append(1)
        if len(calls) == failing_call:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(module.os, "write", write_or_fail)
    with suppress(OSError):
        append(folder, vectors[40:], 41)
    monkeypatch.undo()
    index = VectorIndex(folder)
    assert (len(index), index.damaged()) == (40 if len(calls) >= failing_call else 60, [])
    if len(index) == 40:
        append(folder, vectors[40:], 41)
    assert (len(VectorIndex(folder)), VectorIndex(folder).damaged()) == (60, [])


def test_appending_in_parts_makes_the_same_index(folder, tmp_path):
    vectors = clustered(90)
    append(tmp_path / "whole", vectors)
    for begin in range(0, 90, 30):
        append(folder, vectors[begin : begin + 30], begin + 1)
    whole, parts = VectorIndex(tmp_path / "whole"), VectorIndex(folder)
    assert np.array_equal(whole.numbers, parts.numbers)
    assert np.array_equal(whole.codes, parts.codes)
    assert np.array_equal(whole.scales, parts.scales)
    query = clustered(1, seed=8)[0]
    assert whole.search(query, 9, allowed(90), False) == parts.search(query, 9, allowed(90), False)


def test_a_reader_keeps_its_state_during_an_append(folder):
    vectors = clustered(60)
    append(folder, vectors[:30])
    reader = VectorIndex(folder)
    query = vectors[50]
    before = reader.search(query, 30, allowed(60), False)
    append(folder, vectors[30:], 31)
    assert reader.search(query, 30, allowed(60), False) == before
    assert (len(reader), reader.damaged()) == (30, [])
    assert np.any(reader.centre)
    assert numbers_of(VectorIndex(folder).search(query, 1, allowed(60), False)) == [51]


def test_a_reader_keeps_its_state_during_a_rebuild(folder):
    vectors = clustered(60)
    append(folder, vectors[:30])
    reader = VectorIndex(folder)
    before = reader.search(vectors[0], 30, allowed(60), False)
    append(folder, vectors[30:], 31, source="another")
    assert reader.search(vectors[0], 30, allowed(60), False) == before
    assert reader.damaged() == []
    new = VectorIndex(folder)
    assert (new.state.source, len(new), [*new.numbers]) == ("another", 30, [*range(31, 61)])
    assert len([*folder.iterdir()]) == 6


@pytest.mark.parametrize("name", ["numbers", "codes", "scales", "bits", "centre"])
def test_damage_is_detected(folder, name):
    append(folder, clustered(30))
    (file,) = folder.glob(f"{name}-*")
    intact = file.read_bytes()
    file.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    assert VectorIndex(folder).damaged() == [name]
    file.write_bytes(intact[:-1])
    with pytest.raises(DamagedError, match=f"{name}-.* is too short"):
        VectorIndex(folder)
    file.unlink()
    with pytest.raises(DamagedError, match=name):
        VectorIndex(folder)


def test_another_format_is_an_error(folder):
    append(folder, clustered(3))
    save_state(folder, load_state(folder) | {"format": 99})
    with pytest.raises(DamagedError, match="99"):
        VectorIndex(folder)


def test_a_writer_starts_a_new_index_if_the_files_are_damaged(folder):
    append(folder, clustered(30))
    (file,) = folder.glob("codes-*")
    file.write_bytes(b"")
    assert append(folder, clustered(5)).state.rows == 5
    assert (len(VectorIndex(folder)), VectorIndex(folder).damaged()) == (5, [])


def test_an_open_view_keeps_its_state(embedded):
    vectors = np.eye(ENCODER.dimensions, dtype=np.float32)

    def add(*numbers):
        with embedded.writing() as writer:
            writer.set_encoder(ENCODER)
            for number in numbers:
                writer.add(prepare(Document(f"n{number}", "fever"), vectors=[vectors[number]]))
            writer.commit()

    def search(view):
        clauses = [Clause("fever", {"text": 1.0})]
        nearest = view.vectors[PASSAGES].search(vectors[1], 9, view.postings.alive, False)
        return numbers_of(view.words.search(clauses, 9)), numbers_of(nearest)

    add(0, 1)
    view = embedded.view()
    before = search(view)
    add(2, 3)
    with embedded.writing() as writer:
        writer.remove(["n0"])
        writer.commit()
    embedded.rebuild("words", "vectors")
    embedded.compact()
    assert search(view) == before == ([1, 2], [2, 1])
    assert [sorted(numbers) for numbers in search(embedded.view())] == [[2, 3, 4], [2, 3, 4]]
