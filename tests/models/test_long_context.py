"""Passages in their context."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LongformerConfig, LongformerModel

from capr.models.bi import BiEncoder
from capr.models.long_context import LongEncoder, window
from capr.models.poly import PolyEncoder

FIRST, LAST = 100, 200
WORDS = st.lists(st.integers(0, 50), max_size=30)


@given(WORDS, WORDS, WORDS, st.integers(2, 40))
def test_a_passage_is_kept_whole_with_as_much_context_as_fits(before, passage, after, size):
    actual = window(before, passage, after, size, FIRST, LAST)
    assert len(actual.ids) == len(actual.inside) == min(size, 2 + len(before) + len(passage) + len(after))
    assert (actual.ids[0], actual.ids[-1]) == (FIRST, LAST)
    assert [piece for piece, inside in zip(actual.ids, actual.inside, strict=True) if inside] == passage[: size - 2]
    left = actual.inside.index(True) - 1 if any(actual.inside) else None
    if left is not None:
        right = len(actual.ids) - 2 - left - sum(actual.inside)
        assert actual.ids[1 : 1 + left] == before[len(before) - left :]
        assert actual.ids[1 + left + sum(actual.inside) : -1] == after[:right]
        assert abs(left - right) <= 1 or left == len(before) or right == len(after)


def test_a_passage_is_in_the_middle():
    actual = window(range(10), [50, 51], range(20, 30), 10, FIRST, LAST)
    assert actual.ids == [FIRST, 7, 8, 9, 50, 51, 20, 21, 22, LAST]


def test_the_first_passage_of_a_document_has_all_its_context_after_it():
    actual = window([], [50, 51], range(10), 8, FIRST, LAST)
    assert actual.ids == [FIRST, 50, 51, 0, 1, 2, 3, LAST]
    assert actual.inside == [False, True, True, *[False] * 5]


def test_the_last_passage_of_a_document_has_all_its_context_before_it():
    actual = window(range(10), [50, 51], [], 8, FIRST, LAST)
    assert actual.ids == [FIRST, 6, 7, 8, 9, 50, 51, LAST]


def test_a_passage_that_is_longer_than_the_window_is_cut_and_has_no_context():
    actual = window([1, 2], range(50, 70), [3, 4], 6, FIRST, LAST)
    assert actual.ids == [FIRST, 50, 51, 52, 53, LAST]
    assert actual.inside == [False, True, True, True, True, False]


@pytest.fixture
def longformer():
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        attention_window=[8, 8],
        type_vocab_size=1,
        pad_token_id=1,
    )
    return LongformerModel(config, add_pooling_layer=False).eval()


@pytest.fixture
def global_masks(longformer, monkeypatch):
    """The masks of global attention that the Longformer receives."""
    actual = []
    forward = longformer.forward

    def listening(*args, global_attention_mask, **options):
        actual.append(global_attention_mask)
        return forward(*args, global_attention_mask=global_attention_mask, **options)

    monkeypatch.setattr(longformer, "forward", listening)
    return actual


IDS = torch.tensor([[0, 5, 6, 7, 8, 9, 10, 2], [0, 5, 6, 7, 8, 2, 1, 1]])
MASK = (IDS != 1).long()
INSIDE = torch.tensor([[0, 0, 0, 1, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]])


def test_the_first_piece_attends_globally_for_a_bi_encoder(longformer, global_masks):
    LongEncoder(longformer)(IDS, MASK, INSIDE)
    LongEncoder(longformer)(IDS, MASK)
    for mask in global_masks:
        assert mask.tolist() == [[1, 0, 0, 0, 0, 0, 0, 0]] * 2


def test_the_surroundings_attend_globally_for_a_poly_encoder(longformer, global_masks):
    LongEncoder(longformer, around=True)(IDS, MASK, INSIDE)
    LongEncoder(longformer, around=True)(IDS, MASK)
    assert global_masks[0].tolist() == [[1, 1, 1, 0, 0, 1, 1, 1], [1, 0, 0, 1, 1, 1, 0, 0]]
    assert global_masks[1].tolist() == [[1, 0, 0, 0, 0, 0, 0, 0]] * 2


def test_a_longformer_pools_its_first_piece(longformer):
    model = BiEncoder(LongEncoder(longformer))
    everywhere = torch.zeros_like(MASK)
    everywhere[:, 0] = 1
    with torch.no_grad():
        actual = model.passage(input_ids=IDS, attention_mask=MASK, inside=INSIDE)
        expected = longformer(input_ids=IDS, attention_mask=MASK, global_attention_mask=everywhere).last_hidden_state
    torch.testing.assert_close(actual, expected[:, 0])


def test_the_text_around_a_passage_changes_its_states_but_is_masked(longformer):
    model = PolyEncoder(LongEncoder(longformer, around=True), project=False)
    with torch.no_grad():
        query = model.query(input_ids=IDS[:1, :4], attention_mask=MASK[:1, :4])
        tokens, counts = model.passage(inside=INSIDE, input_ids=IDS, attention_mask=MASK)
        actual = model.scores(query, (tokens, counts))[0].numpy()
        noise = torch.where(INSIDE.bool()[:, :, None], tokens, torch.randn_like(tokens))
        assert model.scores(query, (noise, counts))[0].numpy() == pytest.approx(actual)
        other = torch.where(INSIDE.bool() | (IDS <= 2), IDS, IDS + 10)
        read_elsewhere, _ = model.passage(inside=INSIDE, input_ids=other, attention_mask=MASK)
    assert counts.tolist() == INSIDE.bool().tolist()
    q = query[0].numpy()
    for row in range(2):
        p = tokens[row][INSIDE[row].bool()].numpy()
        weights = np.exp(p @ q - (p @ q).max())
        assert actual[row] == pytest.approx(weights @ p @ q / weights.sum(), rel=1e-4)
    assert not torch.allclose(tokens[0, 3], read_elsewhere[0, 3], atol=1e-4)


def test_padding_does_not_change_the_scores_of_a_passage_in_context(longformer):
    model = PolyEncoder(LongEncoder(longformer, around=True))
    with torch.no_grad():
        query = model.query(input_ids=IDS[:1, :4], attention_mask=MASK[:1, :4])
        padded = model.scores(query, model.passage(inside=INSIDE, input_ids=IDS, attention_mask=MASK))[0, 1]
        inputs = {"inside": INSIDE[1:, :6], "input_ids": IDS[1:, :6], "attention_mask": MASK[1:, :6]}
        alone = model.scores(query, model.passage(**inputs))[0, 0]
    torch.testing.assert_close(padded, alone, atol=1e-4, rtol=1e-4)
