"""Fusion, against values computed by hand."""

import pytest

from capr.index import PassageKey, PassageMatch
from capr.search.fusion import FUSIONS, normalised, reciprocal, reranked


def match(order, score):
    """Return a match of the first passage of the document that was added at position `order`."""
    return PassageMatch(PassageKey(f"d{order}", 0), score, order)


LEXICAL = [match(7, 12.0), match(3, 9.0), match(5, 6.0)]
DENSE = [match(3, 0.9), match(9, 0.5), match(7, 0.1)]


def orders_and_scores(matches):
    return [(match.order, round(match.score, 6)) for match in matches]


def test_reciprocal_ranks_add_up():
    assert orders_and_scores(reciprocal([("lexical", LEXICAL), ("dense", DENSE)])) == [
        (3, round(1 / 62 + 1 / 61, 6)),
        (7, round(1 / 61 + 1 / 63, 6)),
        (9, round(1 / 62, 6)),
        (5, round(1 / 63, 6)),
    ]


def test_reciprocal_ranks_do_not_depend_on_scores():
    tenfold = [match(m.order, m.score * 10 + 3) for m in LEXICAL]
    assert reciprocal([("lexical", tenfold), ("dense", DENSE)]) == reciprocal([("lexical", LEXICAL), ("dense", DENSE)])


def test_scores_are_normalised_and_words_weigh_half_as_much_as_vectors():
    assert orders_and_scores(normalised([("lexical", LEXICAL), ("dense", DENSE)])) == [
        (3, round((0.5 * 0.5 + 1.0) / 1.5, 6)),
        (7, round(0.5 / 1.5, 6)),
        (9, round(0.5 / 1.5, 6)),
        (5, 0.0),
    ]


def test_equal_scores_of_a_stage_count_as_its_best():
    assert orders_and_scores(normalised([("lexical", [match(1, 2.0), match(2, 2.0)]), ("dense", [])])) == [
        (1, round(1 / 3, 6)),
        (2, round(1 / 3, 6)),
    ]


@pytest.mark.parametrize("fusion", FUSIONS.values())
def test_equal_scores_keep_the_order_of_adding(fusion):
    assert [m.order for m in fusion([("dense", [match(9, 1.0)]), ("dense", [match(4, 1.0)])])] == [4, 9]


@pytest.mark.parametrize("fusion", FUSIONS.values())
def test_a_single_ranking_keeps_its_order(fusion):
    assert fusion([("lexical", []), ("dense", [])]) == []
    assert [m.order for m in fusion([("lexical", LEXICAL), ("dense", [])])] == [7, 3, 5]


def test_all_stages_order_the_candidates_of_a_ranker_before_the_other_candidates():
    ordered = [match(7, 0.3), match(3, 0.2), match(9, 0.1), match(5, 0.05)]
    # One standard deviation above and below their mean, as in the other stages.
    ranker_matches = [match(3, 4.0), match(7, 2.0)]
    matches = reranked(ordered, [("lexical", LEXICAL), ("dense", DENSE), ("rerank", ranker_matches)])
    third, seventh = (2.0 + 1.0 - 0.5) / 3.5, (-2.0 - 1.0 + 0.5) / 3.5
    assert orders_and_scores(matches) == [
        (3, round(third, 6)),
        (7, round(seventh, 6)),
        (9, round(seventh - 1, 6)),
        (5, round(seventh - 2, 6)),
    ]


def test_the_other_stages_decide_if_the_scores_of_the_ranker_are_equal():
    ranker_matches = [match(5, 1.0), match(7, 1.0)]
    assert [m.order for m in reranked(LEXICAL, [("lexical", LEXICAL), ("rerank", ranker_matches)])] == [7, 5, 3]


def test_a_candidate_that_a_stage_lacks_has_its_lowest_score():
    ranker_matches = [match(5, 1.0), match(9, 1.0), match(3, 1.0)]
    matches = reranked([match(n, 0.0) for n in (5, 9, 3)], [("dense", DENSE), ("rerank", ranker_matches)])
    assert [m.order for m in matches] == [3, 9, 5]  # 0.9, 0.5, and 0.1, the lowest score of the stage


def test_a_ranker_without_candidates_changes_nothing():
    assert [m.order for m in reranked(LEXICAL, [("lexical", LEXICAL), ("rerank", [])])] == [7, 3, 5]
    assert reranked([], [("lexical", []), ("rerank", [])]) == []
