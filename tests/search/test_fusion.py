"""Fusion, against values computed by hand."""

import pytest

from capr.index import Found
from capr.search.fusion import FUSIONS, normalised, reciprocal, reranked

LEXICAL = [Found(7, 12.0), Found(3, 9.0), Found(5, 6.0)]
DENSE = [Found(3, 0.9), Found(9, 0.5), Found(7, 0.1)]


def shown(found):
    return [(one.number, round(one.score, 6)) for one in found]


def test_reciprocal_ranks_add_up():
    assert shown(reciprocal([("lexical", LEXICAL), ("dense", DENSE)])) == [
        (3, round(1 / 62 + 1 / 61, 6)),
        (7, round(1 / 61 + 1 / 63, 6)),
        (9, round(1 / 62, 6)),
        (5, round(1 / 63, 6)),
    ]


def test_reciprocal_ranks_do_not_depend_on_scores():
    tenfold = [Found(one.number, one.score * 10 + 3) for one in LEXICAL]
    assert reciprocal([("lexical", tenfold), ("dense", DENSE)]) == reciprocal([("lexical", LEXICAL), ("dense", DENSE)])


def test_scores_are_brought_to_one_range_and_words_count_half_as_much_as_vectors():
    assert shown(normalised([("lexical", LEXICAL), ("dense", DENSE)])) == [
        (3, round((0.5 * 0.5 + 1.0) / 1.5, 6)),
        (7, round(0.5 / 1.5, 6)),
        (9, round(0.5 / 1.5, 6)),
        (5, 0.0),
    ]


def test_scores_that_are_all_equal_count_as_the_best():
    assert shown(normalised([("lexical", [Found(1, 2.0), Found(2, 2.0)]), ("dense", [])])) == [
        (1, round(1 / 3, 6)),
        (2, round(1 / 3, 6)),
    ]


@pytest.mark.parametrize("fusion", FUSIONS.values())
def test_equals_come_in_the_order_of_their_numbers(fusion):
    assert [one.number for one in fusion([("dense", [Found(9, 1.0)]), ("dense", [Found(4, 1.0)])])] == [4, 9]


@pytest.mark.parametrize("fusion", FUSIONS.values())
def test_nothing_gives_nothing_and_one_ranking_keeps_its_order(fusion):
    assert fusion([("lexical", []), ("dense", [])]) == []
    assert [one.number for one in fusion([("lexical", LEXICAL), ("dense", [])])] == [7, 3, 5]


def test_what_a_ranker_has_read_is_put_in_the_order_of_all_stages_and_the_others_stay_behind():
    ordered = [Found(7, 0.3), Found(3, 0.2), Found(9, 0.1), Found(5, 0.05)]
    read = [Found(3, 4.0), Found(7, 2.0)]  # one standard deviation above and below their mean, as in the others
    found = reranked(ordered, [("lexical", LEXICAL), ("dense", DENSE), ("rerank", read)])
    third, seventh = (2.0 + 1.0 - 0.5) / 3.5, (-2.0 - 1.0 + 0.5) / 3.5
    assert shown(found) == [(3, round(third, 6)), (7, round(seventh, 6)), (9, round(seventh - 1, 6)),
                            (5, round(seventh - 2, 6))]  # fmt: skip


def test_the_other_stages_decide_where_a_ranker_does_not():
    read = [Found(5, 1.0), Found(7, 1.0)]
    assert [one.number for one in reranked(LEXICAL, [("lexical", LEXICAL), ("rerank", read)])] == [7, 5, 3]


def test_what_a_stage_has_not_found_counts_as_its_last_passage():
    read = [Found(5, 1.0), Found(9, 1.0), Found(3, 1.0)]
    found = reranked([Found(n, 0.0) for n in (5, 9, 3)], [("dense", DENSE), ("rerank", read)])
    assert [one.number for one in found] == [3, 9, 5]  # 0.9, 0.5, and 0.1 as the last of the stage has


def test_a_ranker_that_has_read_nothing_changes_nothing():
    assert [one.number for one in reranked(LEXICAL, [("lexical", LEXICAL), ("rerank", [])])] == [7, 3, 5]
    assert reranked([], [("lexical", []), ("rerank", [])]) == []
