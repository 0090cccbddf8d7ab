"""Vectors of word pieces: runs, four bits, MaxSim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capr.runtime.late import RUNS, maxsim, pack, pool, unpack


def unit_vectors(count, dimensions=64, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_four_bits_keep_the_direction():
    vectors = unit_vectors(500)
    restored = unpack(pack(vectors), 64)
    assert len(pack(vectors)) == 500 * 32
    assert np.linalg.norm(restored, axis=1) == pytest.approx(np.ones(500), abs=1e-5)
    cosines = (vectors * restored).sum(1)
    assert cosines.min() > 0.98
    assert cosines.mean() > 0.994


def test_a_passage_takes_at_most_1472_bytes():
    assert len(pack(pool(unit_vectors(288)))) == RUNS * 32 == 1472


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_runs_are_means_of_neighbours_that_are_cut_where_they_are_least_alike(count, runs, seed):
    vectors = unit_vectors(count, 8, seed)
    pooled = pool(vectors, runs)
    assert len(pooled) == min(count, runs)
    similarities = (vectors[1:] * vectors[:-1]).sum(1)
    cuts = set(np.argsort(similarities, kind="stable")[: len(pooled) - 1].tolist())
    groups = [[vectors[0]]]
    for number, vector in enumerate(vectors[1:]):
        if number in cuts:
            groups.append([])
        groups[-1].append(vector)
    means = np.array([np.sum(group, axis=0) for group in groups])
    assert pooled == pytest.approx(means / np.linalg.norm(means, axis=1, keepdims=True), abs=1e-5)


def test_maxsim_is_the_mean_of_the_best_products():
    query = unit_vectors(5, seed=1)
    passages = [pack(unit_vectors(count, seed=count)) for count in (3, 1, 40)]
    wanted = [(unpack(code, 64) @ query.T).max(0).mean() for code in passages]
    assert maxsim(query, passages) == pytest.approx(wanted, abs=1e-6)


def test_a_score_does_not_depend_on_the_other_passages():
    query = unit_vectors(32, seed=1)
    passages = [pack(unit_vectors(10 + count % 30, seed=count)) for count in range(200)]
    alone = [float(maxsim(query, [code])[0]) for code in passages]
    assert maxsim(query, passages).tolist() == alone
    assert maxsim(query, passages[::-1])[::-1].tolist() == alone


def test_passages_without_vectors_score_0():
    assert maxsim(unit_vectors(3), [b"", pack(unit_vectors(1)), b""])[[0, 2]].tolist() == [0, 0]
    assert maxsim(unit_vectors(3), []).tolist() == []
    assert maxsim(np.zeros((0, 64), np.float32), [pack(unit_vectors(2))]).tolist() == [0]


def test_a_code_of_other_dimensions_is_refused():
    with pytest.raises(ValueError, match="33 bytes are no vectors of 64 dimensions in four bits"):
        unpack(bytes(33), 64)
