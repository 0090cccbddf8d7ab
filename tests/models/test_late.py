"""Late interaction against a few lines of numpy."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from capr.models.late import LateEncoder, join_padded

SHORT = 8
IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 5, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


@pytest.fixture
def model():
    torch.manual_seed(0)
    options = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = BertModel(BertConfig(vocab_size=20, max_position_embeddings=16, **options, **dropout))
    return LateEncoder(encoder, SHORT, 0.02).eval()


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_each_piece_but_padding_has_a_vector_of_length_1(model):
    vectors = model.read(input_ids=IDS, attention_mask=MASK)
    lengths = vectors.pieces.norm(dim=-1).detach().numpy()
    assert vectors.whole.shape == (2, 16)
    assert vectors.pieces.shape == (2, 5, SHORT)
    assert lengths == pytest.approx(MASK.numpy().astype(float), abs=1e-5)


def test_the_pieces_are_a_projection_of_the_states_of_the_encoder(model):
    with torch.no_grad():
        vectors = model.read(input_ids=IDS[:1], attention_mask=MASK[:1])
        states = model.passage_encoder(input_ids=IDS[:1], attention_mask=MASK[:1]).last_hidden_state[0].numpy()
    weight = model.projection.weight.detach().numpy()
    assert vectors.pieces[0].numpy() == pytest.approx(unit(states @ weight.T), abs=1e-5)
    assert vectors.whole[0].numpy() == pytest.approx(states[0], abs=1e-6)


def test_maxsim_is_the_mean_of_the_best_product_of_each_piece_of_the_query(model):
    rng = np.random.default_rng(0)
    queries = [unit(rng.normal(size=(length, SHORT))) for length in (3, 5)]
    passages = [unit(rng.normal(size=(length, SHORT))) for length in (1, 4, 6)]
    expected = [[(query @ passage.T).max(axis=1).mean() for passage in passages] for query in queries]
    tensors = [join_padded([torch.tensor(part)[None] for part in parts]) for parts in (queries, passages)]
    assert model.maxsim(*tensors).numpy() == pytest.approx(np.array(expected), abs=1e-6)


def test_the_masks_that_pad_a_query_change_none_of_its_other_vectors(model):
    padded = torch.tensor([[2, 7, 8, 3, 4, 4, 4]])
    attention, counts = torch.tensor([[1, 1, 1, 1, 0, 0, 0]]), torch.ones(1, 7)
    with torch.no_grad():
        plain = model.read(input_ids=padded[:, :4], attention_mask=attention[:, :4])
        masked = model.read(input_ids=padded, attention_mask=attention, counts=counts)
    assert masked.whole.numpy() == pytest.approx(plain.whole.numpy(), abs=1e-6)
    assert masked.pieces[:, :4].numpy() == pytest.approx(plain.pieces.numpy(), abs=1e-6)
    assert masked.pieces[:, 4:].norm(dim=-1).numpy() == pytest.approx(np.ones((1, 3)), abs=1e-5)


def test_the_gradient_of_maxsim_is_that_of_finite_differences():
    torch.manual_seed(1)
    model = LateEncoder.__new__(LateEncoder)
    queries = torch.nn.functional.normalize(torch.randn(2, 3, 4, dtype=torch.double), dim=-1).requires_grad_()
    passages = torch.nn.functional.normalize(torch.randn(3, 5, 4, dtype=torch.double), dim=-1).requires_grad_()

    def loss(queries, passages):
        products = torch.einsum("qis,pjs->qpij", queries, passages)
        return products.amax(-1).sum(-1)

    assert torch.autograd.gradcheck(loss, (queries, passages))
    assert model.maxsim(queries, passages).detach().numpy() == pytest.approx(
        loss(queries, passages).detach().numpy() / 3, abs=1e-6
    )
