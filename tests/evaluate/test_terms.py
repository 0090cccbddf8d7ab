"""Compare BM25 with another library, and TF-IDF with values computed by hand."""

import math
import random
from itertools import pairwise

import bm25s
import numpy as np
import pytest

from capr import samples
from capr.evaluate.term_baselines import Terms, words


def test_words_ignore_case_and_accents():
    assert words("Ménière's DISEASE, beta-2 (HbA1c 7.5 %)") == ["meniere's", "disease", "beta", "2", "hba1c", "7.5"]
    assert words("naïve café Sjögren") == ["naive", "cafe", "sjogren"]
    assert words("ﬁbrosis") == ["fibrosis"]
    assert words(" .,- ") == []


@pytest.fixture(scope="module")
def texts():
    documents = samples.documents()[::2][:40]
    return {document.id: document.text[: 200 + 37 * number] for number, document in enumerate(documents)}


def test_bm25_agrees_with_another_library(texts):
    index = Terms(texts)
    reference = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    reference.index([words(text) for text in texts.values()], show_progress=False)
    rng = random.Random(0)
    vocabulary = sorted({word for text in texts.values() for word in words(text)})
    for _ in range(30):
        query = rng.sample(vocabulary, 4)
        expected = reference.get_scores(query)
        actual = index.scores(" ".join(query))
        assert (actual > 0).any()
        factors = expected[actual > 0] / actual[actual > 0]
        assert np.allclose(factors, factors[0], rtol=1e-4)
        assert (expected[actual == 0] == 0).all()
        best = index.best(" ".join(query), len(texts))
        scores = dict(zip(index.ids, expected, strict=True))
        assert {*best} == {id for id, score in scores.items() if score > 0}
        assert all(scores[a] >= scores[b] - 1e-4 for a, b in pairwise(best))


def test_tfidf_equals_hand_values():
    index = Terms({"a": "gout gout toe", "b": "gout", "c": "toe pain in the toe"}, "tfidf")
    gout, pain = 1 + math.log(4 / 3), 1 + math.log(4 / 2)
    expected = [math.sqrt(2) * gout**2 / math.sqrt(3), gout**2, pain**2 / math.sqrt(5)]
    assert index.scores("Gout pain") == pytest.approx(expected)


def test_bm25_equals_hand_values():
    index = Terms({"a": "gout gout toe", "b": "gout"})
    rarity = math.log(1 + 0.5 / 2.5)
    expected = [rarity * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)), rarity * 1 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))]
    assert index.scores("gout") == pytest.approx(expected)


def test_a_repeated_query_word_counts_twice():
    index = Terms({"a": "gout toe", "b": "toe"})
    assert index.scores("gout gout") == pytest.approx(2 * index.scores("gout"))


def test_best_passages_have_a_query_word_and_ties_keep_their_order():
    index = Terms({"z": "gout", "a": "gout", "m": "stroke", "b": "gout", "empty": ""})
    assert index.best("gout", 10) == ["z", "a", "b"]
    assert index.best("gout", 2) == ["z", "a"]
    assert index.best("nothing", 10) == []
    assert index.best("", 10) == []
