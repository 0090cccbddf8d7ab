"""BM25 against an independent library, TF-IDF against a hand computation."""

import math
import random
from itertools import pairwise

import bm25s
import numpy as np
import pytest

from capr import samples
from capr.evaluate.terms import Terms, words


def test_words_have_no_case_and_no_accents():
    assert words("Ménière's DISEASE, beta-2 (HbA1c 7.5 %)") == ["meniere's", "disease", "beta", "2", "hba1c", "7.5"]
    assert words("naïve café Sjögren") == ["naive", "cafe", "sjogren"]
    assert words("ﬁbrosis") == ["fibrosis"]
    assert words(" .,- ") == []


@pytest.fixture(scope="module")
def texts():
    some = samples.documents()[::2][:40]
    return {document.id: document.text[: 200 + 37 * place] for place, document in enumerate(some)}


def test_bm25_is_that_of_another_library(texts):
    ours = Terms(texts)
    theirs = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    theirs.index([words(text) for text in texts.values()], show_progress=False)
    draw = random.Random(0)
    vocabulary = sorted({word for text in texts.values() for word in words(text)})
    for _ in range(30):
        query = draw.sample(vocabulary, 4)
        expected = theirs.get_scores(query)
        found = ours.scores(" ".join(query))
        assert (found > 0).any()
        factors = expected[found > 0] / found[found > 0]
        assert np.allclose(factors, factors[0], rtol=1e-4)
        assert (expected[found == 0] == 0).all()
        best = ours.best(" ".join(query), len(texts))
        scores = dict(zip(ours.ids, expected, strict=True))
        assert {*best} == {id for id, score in scores.items() if score > 0}
        assert all(scores[a] >= scores[b] - 1e-4 for a, b in pairwise(best))


def test_tfidf_is_that_computed_by_hand():
    index = Terms({"a": "gout gout toe", "b": "gout", "c": "toe pain in the toe"}, "tfidf")
    gout, pain = 1 + math.log(4 / 3), 1 + math.log(4 / 2)
    expected = [math.sqrt(2) * gout**2 / math.sqrt(3), gout**2, pain**2 / math.sqrt(5)]
    assert index.scores("Gout pain") == pytest.approx(expected)


def test_bm25_is_that_computed_by_hand():
    index = Terms({"a": "gout gout toe", "b": "gout"})
    rarity = math.log(1 + 0.5 / 2.5)
    expected = [rarity * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)), rarity * 1 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))]
    assert index.scores("gout") == pytest.approx(expected)


def test_a_word_asked_twice_counts_twice():
    index = Terms({"a": "gout toe", "b": "toe"})
    assert index.scores("gout gout") == pytest.approx(2 * index.scores("gout"))


def test_the_best_have_a_word_of_the_query_and_ties_keep_the_order_of_the_passages():
    index = Terms({"z": "gout", "a": "gout", "m": "stroke", "b": "gout", "empty": ""})
    assert index.best("gout", 10) == ["z", "a", "b"]
    assert index.best("gout", 2) == ["z", "a"]
    assert index.best("nothing", 10) == []
    assert index.best("", 10) == []
