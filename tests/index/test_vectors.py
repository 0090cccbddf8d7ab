"""The index of vectors: codes, the approximate search and its files."""

import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import ENCODER, prepare

from capr.documents import Document
from capr.index import Clause, Grain
from capr.index import vectors as module
from capr.index.derived import DamagedError, load_state, save_state
from capr.index.vectors import Vectors, VectorsWriter, decoded, encoded

DIMENSIONS = 256


def clustered(count, seed=3, clusters=40, inner=48):
    """Vectors of length 1 like those of encoders: around centres away from the origin, along some directions."""
    fixed = np.random.default_rng(0)
    centres = fixed.normal(size=(clusters, DIMENSIONS)) + 0.7
    directions = fixed.normal(size=(inner, DIMENSIONS)) / np.sqrt(inner)
    generator = np.random.default_rng(seed)
    vectors = (
        centres[generator.integers(clusters, size=count)] + 0.7 * generator.normal(size=(count, inner)) @ directions
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def append(folder, vectors, first=1, through=None, source="e"):
    writer = VectorsWriter(folder, source, DIMENSIONS)
    numbers = range(first, first + len(vectors))
    writer.append(numbers, [encoded(vector) for vector in vectors], through or numbers[-1])
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


def numbers_of(found):
    return [one.number for one in found]


def nearest(vectors, query, k, mask=None):
    scores = vectors @ query
    if mask is not None:
        scores = np.where(mask[1:], scores, -np.inf)
    return [int(i) + 1 for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > -np.inf]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40))
def test_a_code_is_at_most_half_a_step_away(values):
    vector = np.array(values, np.float32)
    step = max(np.abs(vector).max(), 1e-12) / 127
    assert len(encoded(vector)) == 4 + len(vector)
    assert np.abs(decoded(encoded(vector)) - vector).max() <= 0.5001 * step


def test_codes_of_codes_are_the_same():
    for vector in clustered(50):
        assert encoded(decoded(encoded(vector))) == encoded(vector)


def test_dot_products_of_codes_are_near_the_true_ones(folder):
    vectors = clustered(500)
    append(folder, vectors)
    for found in Vectors(folder).search(vectors[0], 500, allowed(500), False):
        assert found.score == pytest.approx(float(vectors[found.number - 1] @ vectors[0]), abs=0.01)


def test_few_vectors_are_searched_exactly(folder):
    vectors = clustered(300)
    append(folder, vectors)
    index = Vectors(folder)
    decodeds = np.array([decoded(encoded(vector)) for vector in vectors])
    some = allowed(300, np.arange(1, 300, 7))
    for query in clustered(10, seed=4):
        assert numbers_of(index.search(query, 10, allowed(300), False)) == nearest(decodeds, query, 10)
        assert numbers_of(index.search(query, 10, some, True)) == nearest(decodeds, query, 10, some)
    assert index.search(vectors[0], 10, allowed(300, []), True) == []
    assert len(index.search(vectors[0], 1000, allowed(300), False)) == 300


@pytest.fixture
def approximate(monkeypatch):
    """As for millions of vectors: few of them are compared by their codes."""
    monkeypatch.setattr(module, "FEW", 50)
    monkeypatch.setattr(module, "RESCORED", 300)
    called = []
    original = Vectors._nearest
    monkeypatch.setattr(Vectors, "_nearest", lambda *given: called.append(1) or original(*given))
    yield called
    assert called


@pytest.mark.parametrize("half", ["first", "second"])
def test_of_half_a_query_only_that_half_is_compared(folder, approximate, half):
    """Where a query is 0, the bits of vectors say nothing, and would drown those of the other half."""
    vectors = clustered(4000)
    append(folder, vectors)
    index = Vectors(folder)
    middle = vectors.shape[1] // 2
    right = 0
    queries = clustered(50, seed=6)
    for query in queries:
        query[slice(middle, None) if half == "first" else slice(middle)] = 0
        right += len({*numbers_of(index.search(query, 10, allowed(4000), False))} & {*nearest(vectors, query, 10)})
    assert right >= 0.97 * 10 * len(queries)
    nothing = np.zeros(vectors.shape[1], np.float32)
    assert len(index.search(nothing, 10, allowed(4000), False)) == 10


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 0.15])
def test_most_of_the_true_neighbours_are_found(folder, approximate, share, filtered):
    count = 4000
    vectors = clustered(count)
    append(folder, vectors[:1500])
    append(folder, vectors[1500:], 1501)
    index = Vectors(folder)
    chosen = np.flatnonzero(np.random.default_rng(5).random(count) < share) + 1
    mask = allowed(count, chosen)
    right = 0
    queries = clustered(100, seed=6)
    for query in queries:
        found = index.search(query, 10, mask, filtered)
        assert len(found) == 10
        assert all(mask[one.number] for one in found)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        right += len({*numbers_of(found)} & {*nearest(vectors, query, 10, mask)})
    assert right / (10 * len(queries)) >= 0.98


def test_removed_vectors_are_passed_over(folder, approximate):
    vectors = clustered(2000)
    append(folder, vectors)
    query = clustered(1, seed=6)[0]
    gone = nearest(vectors, query, 1000)
    mask = allowed(2000)
    mask[gone] = False
    found = numbers_of(Vectors(folder).search(query, 10, mask, False))
    assert len(found) == 10
    assert not {*found} & {*gone}


def test_few_that_pass_are_all_found_however_far_they_are(folder, approximate):
    vectors = clustered(2000)
    append(folder, vectors)
    index = Vectors(folder)
    index.search(vectors[0], 5, allowed(2000), False)
    far = nearest(vectors, vectors[0], 2000)[-40:]
    assert {*numbers_of(index.search(vectors[0], 100, allowed(2000, far), True))} == {*far}


def test_equal_vectors_come_in_the_order_of_their_numbers(folder):
    append(folder, np.repeat(clustered(1), 20, axis=0))
    assert numbers_of(Vectors(folder).search(clustered(1)[0], 20, allowed(20), False)) == [*range(1, 21)]


def test_no_vectors_are_an_index_too(folder):
    writer = VectorsWriter(folder, "e", DIMENSIONS)
    writer.append([], [], 7)
    index = Vectors(folder)
    assert (len(index), index.state.through, index.damaged()) == (0, 7, [])
    append(folder, clustered(5), through=12)
    assert (len(Vectors(folder)), Vectors(folder).state.through) == (5, 12)
    assert Vectors(folder).damaged() == []


def test_what_a_crash_has_left_behind_the_rows_is_overwritten(folder):
    vectors = clustered(60)
    append(folder, vectors[:40])
    for file in folder.iterdir():
        if file.name.partition("-")[0] in ("numbers", "codes", "scales", "bits"):
            with file.open("ab") as end:
                end.write(b"garbage" * 100)
    (folder / "state.json.part").write_text("{half")
    assert Vectors(folder).damaged() == []
    append(folder, vectors[40:], 41)
    index = Vectors(folder)
    assert (len(index), index.damaged()) == (60, [])
    assert numbers_of(index.search(vectors[50], 1, allowed(60), False)) == [51]
    assert numbers_of(index.search(vectors[3], 1, allowed(60), False)) == [4]


@pytest.mark.parametrize("fails", [1, 2, 3, 4, 5])
def test_an_append_that_fails_leaves_what_was_there(folder, monkeypatch, fails):
    vectors = clustered(60)
    append(folder, vectors[:40])
    calls = []
    write = os.write

    def full(descriptor, data):
        calls.append(1)
        if len(calls) == fails:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(module.os, "write", full)
    with suppress(OSError):
        append(folder, vectors[40:], 41)
    monkeypatch.undo()
    index = Vectors(folder)
    assert (len(index), index.damaged()) == (40 if len(calls) >= fails else 60, [])
    if len(index) == 40:
        append(folder, vectors[40:], 41)
    assert (len(Vectors(folder)), Vectors(folder).damaged()) == (60, [])


def test_parts_give_the_same_as_the_whole(folder, tmp_path):
    vectors = clustered(90)
    append(tmp_path / "whole", vectors)
    for begin in range(0, 90, 30):
        append(folder, vectors[begin : begin + 30], begin + 1)
    whole, parts = Vectors(tmp_path / "whole"), Vectors(folder)
    assert np.array_equal(whole.numbers, parts.numbers)
    assert np.array_equal(whole.codes, parts.codes)
    assert np.array_equal(whole.scales, parts.scales)
    query = clustered(1, seed=8)[0]
    assert whole.search(query, 9, allowed(90), False) == parts.search(query, 9, allowed(90), False)


def test_a_reader_keeps_its_state_while_others_are_appended(folder):
    vectors = clustered(60)
    append(folder, vectors[:30])
    reader = Vectors(folder)
    query = vectors[50]
    before = reader.search(query, 30, allowed(60), False)
    append(folder, vectors[30:], 31)
    assert reader.search(query, 30, allowed(60), False) == before
    assert (len(reader), reader.damaged()) == (30, [])
    assert np.any(reader.centre)
    assert numbers_of(Vectors(folder).search(query, 1, allowed(60), False)) == [51]


def test_a_reader_keeps_its_state_while_all_is_made_anew(folder):
    vectors = clustered(60)
    append(folder, vectors[:30])
    reader = Vectors(folder)
    before = reader.search(vectors[0], 30, allowed(60), False)
    append(folder, vectors[30:], 31, source="another")
    assert reader.search(vectors[0], 30, allowed(60), False) == before
    assert reader.damaged() == []
    new = Vectors(folder)
    assert (new.state.source, len(new), [*new.numbers]) == ("another", 30, [*range(31, 61)])
    assert len([*folder.iterdir()]) == 6


@pytest.mark.parametrize("name", ["numbers", "codes", "scales", "bits", "centre"])
def test_damage_is_noticed(folder, name):
    append(folder, clustered(30))
    (file,) = folder.glob(f"{name}-*")
    sound = file.read_bytes()
    file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert Vectors(folder).damaged() == [name]
    file.write_bytes(sound[:-1])
    with pytest.raises(DamagedError, match=f"{name}-.* is too short"):
        Vectors(folder)
    file.unlink()
    with pytest.raises(DamagedError, match=name):
        Vectors(folder)


def test_another_format_is_not_read(folder):
    append(folder, clustered(3))
    save_state(folder, load_state(folder) | {"format": 99})
    with pytest.raises(DamagedError, match="99"):
        Vectors(folder)


def test_a_writer_begins_anew_where_the_files_are_damaged(folder):
    append(folder, clustered(30))
    (file,) = folder.glob("codes-*")
    file.write_bytes(b"")
    assert append(folder, clustered(5)).state.rows == 5
    assert (len(Vectors(folder)), Vectors(folder).damaged()) == (5, [])


def test_a_view_that_was_opened_before_keeps_its_state(embedded):
    vectors = np.eye(ENCODER.dimensions, dtype=np.float32)

    def add(*places):
        with embedded.writing() as writer:
            writer.set_encoder(ENCODER)
            for place in places:
                writer.add(prepare(Document(f"n{place}", "fever"), vectors=[vectors[place]]))
            writer.commit()

    def found(view):
        clauses = [Clause("fever", {"text": 1.0})]
        near = view.vectors[Grain.PASSAGES].search(vectors[1], 9, view.postings.alive, False)
        return numbers_of(view.words.search(clauses, 9)), numbers_of(near)

    add(0, 1)
    view = embedded.view()
    before = found(view)
    add(2, 3)
    with embedded.writing() as writer:
        writer.remove(["n0"])
        writer.commit()
    embedded.rebuild("words", "vectors")
    embedded.compact()
    assert found(view) == before == ([1, 2], [2, 1])
    assert [sorted(one) for one in found(embedded.view())] == [[2, 3, 4], [2, 3, 4]]
