"""The networks against a few lines of numpy."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

from capr.models.bi import BiEncoder, BiEncoderForExport
from capr.models.cross import CrossEncoder, CrossEncoderForExport
from capr.models.layers import cut
from capr.models.poly import PolyEncoder, PolyPassagesForExport, PolyQueriesForExport

SIZE = 16
IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 5, 3, 0, 0], [2, 6, 6, 3, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])


def config(**changes) -> BertConfig:
    settings = {
        "vocab_size": 20,
        "hidden_size": SIZE,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 16,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return BertConfig(**{**settings, **changes})


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return BertModel(config(), add_pooling_layer=False).eval()


@pytest.fixture
def vectors():
    draw = np.random.default_rng(0)
    return draw.normal(size=(3, SIZE)).astype(np.float32), draw.normal(size=(4, SIZE)).astype(np.float32)


@pytest.fixture
def tokens():
    draw = np.random.default_rng(1)
    queries = draw.normal(size=(3, SIZE)).astype(np.float32)
    passages = draw.normal(size=(4, 5, SIZE)).astype(np.float32)
    counts = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)
    return queries, passages, counts


def normal(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def states(encoder, ids, mask) -> np.ndarray:
    with torch.no_grad():
        return encoder(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()


def poly_by_hand(queries, passages, counts, weight=None, scale=1.0, cosine=False, temperature=1.0) -> np.ndarray:
    actual = np.zeros((len(queries), len(passages)))
    for row, q in enumerate(queries):
        for column, (all_tokens, counted) in enumerate(zip(passages, counts, strict=True)):
            p = all_tokens[counted]
            exponents = np.exp(p @ q * scale - (p @ q * scale).max())
            z = p.T @ (exponents / exponents.sum())
            z = z if weight is None else np.maximum(weight @ z, 0)
            score = z @ q / (np.linalg.norm(z) * np.linalg.norm(q) if cosine else 1)
            actual[row, column] = score / temperature
    return actual


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_text_is_pooled_without_its_padding(encoder, pooling):
    model = BiEncoder(encoder, pooling=pooling)
    actual = model.passage(input_ids=IDS, attention_mask=MASK).detach().numpy()
    for row, length in enumerate(MASK.sum(1)):
        alone = states(encoder, IDS[row : row + 1, :length], MASK[row : row + 1, :length])[0]
        np.testing.assert_allclose(actual[row], alone[0] if pooling == "cls" else alone.mean(0), atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_ids_of_padding_do_not_matter(encoder, pooling):
    model = BiEncoder(encoder, pooling=pooling)
    other = torch.where(MASK.bool(), IDS, 11)
    expected, actual = (model.query(input_ids=ids, attention_mask=MASK) for ids in (IDS, other))
    torch.testing.assert_close(expected, actual)


@pytest.mark.parametrize("dimensions", [None, 4])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_bi_encoder_compares_the_first_dimensions(encoder, vectors, similarity, dimensions):
    queries, passages = vectors
    model = BiEncoder(encoder, similarity=similarity, temperature=0.25)
    actual = model.scores(torch.from_numpy(queries), torch.from_numpy(passages), dimensions)
    queries, passages = queries[:, :dimensions], passages[:, :dimensions]
    if similarity == "cosine":
        queries, passages = normal(queries), normal(passages)
    np.testing.assert_allclose(actual.numpy(), queries @ passages.T / 0.25, rtol=1e-4, atol=1e-5)


def test_vectors_are_normalised_for_cosine_but_not_for_dot(encoder):
    names = ("input_ids", "attention_mask")
    for similarity in ("cosine", "dot"):
        model = BiEncoder(encoder, similarity=similarity)
        pooled = model.passage(input_ids=IDS, attention_mask=MASK).detach().numpy()
        actual = BiEncoderForExport(model, encoder, names)(IDS, MASK).detach().numpy()
        np.testing.assert_allclose(actual, normal(pooled) if similarity == "cosine" else pooled, atol=1e-5)


@pytest.mark.parametrize("kind", [BiEncoder, PolyEncoder])
def test_a_shared_encoder_is_one_object_and_separate_ones_begin_equal(encoder, kind):
    shared, separate = kind(encoder, shared=True), kind(encoder, shared=False)
    assert shared.query_encoder is shared.passage_encoder
    assert separate.query_encoder is not separate.passage_encoder
    assert len(list(separate.parameters())) > len(list(shared.parameters()))
    for query_weight, passage_weight in zip(
        separate.query_encoder.parameters(), separate.passage_encoder.parameters(), strict=True
    ):
        assert torch.equal(query_weight, passage_weight)
        assert query_weight is not passage_weight


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_gradients_reach_every_parameter_of_a_bi_encoder(encoder, shared, pooling):
    model = BiEncoder(encoder, shared=shared, pooling=pooling)
    queries, passages = (side(input_ids=IDS, attention_mask=MASK) for side in (model.query, model.passage))
    (model.scores(queries, passages) * torch.rand(3, 3)).sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]
    for side in (model.query_encoder, model.passage_encoder):
        assert side.embeddings.word_embeddings.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("codes", [0, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_gradients_reach_every_parameter_of_a_poly_encoder(encoder, shared, codes):
    model = PolyEncoder(encoder, shared=shared, codes=codes)
    queries, passages = (side(input_ids=IDS, attention_mask=MASK) for side in (model.query, model.passage))
    (model.scores(queries, passages) * torch.rand(3, 3)).sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]
    for side in (model.query_encoder, model.passage_encoder):
        assert side.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    assert model.projection.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("project", [False, True])
def test_a_poly_encoder_attends_as_equation_2_says(encoder, tokens, project, scaled, similarity):
    queries, passages, counts = tokens
    model = PolyEncoder(encoder, True, project, scaled, 0, similarity, 0.5)
    weight = None
    if project:
        weight = np.random.default_rng(2).normal(size=(SIZE, SIZE)).astype(np.float32)
        model.projection.weight.data = torch.from_numpy(weight)
    actual = model.scores(torch.from_numpy(queries), (torch.from_numpy(passages), torch.from_numpy(counts)))
    scale = SIZE**-0.5 if scaled else 1.0
    expected = poly_by_hand(queries, passages, counts, weight, scale, similarity == "cosine", 0.5)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_projection_begins_as_the_identity(encoder, tokens):
    queries, passages, counts = tokens
    model = PolyEncoder(encoder)
    actual = model.scores(torch.from_numpy(queries), (torch.from_numpy(passages), torch.from_numpy(counts)))
    expected = poly_by_hand(queries, passages, counts, np.eye(SIZE))
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("codes", [0, 3])
def test_the_score_of_a_padded_passage_is_that_of_the_passage_alone(encoder, codes):
    torch.manual_seed(1)
    model = PolyEncoder(encoder, codes=codes)
    with torch.no_grad():
        query = model.query(input_ids=IDS[:1], attention_mask=MASK[:1])
        padded = model.scores(query, model.passage(input_ids=IDS, attention_mask=MASK))[0]
        alone = [
            model.scores(query, model.passage(input_ids=IDS[i : i + 1, :n], attention_mask=MASK[i : i + 1, :n]))[0, 0]
            for i, n in enumerate(MASK.sum(1))
        ]
    torch.testing.assert_close(padded, torch.stack(alone), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("codes", [0, 3])
def test_pieces_outside_the_passage_get_no_attention(encoder, codes):
    torch.manual_seed(1)
    inside = torch.tensor([[0, 1, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0]])
    model = PolyEncoder(encoder, codes=codes)
    with torch.no_grad():
        queries = model.query(input_ids=IDS, attention_mask=MASK)
        actual = model.scores(queries, model.passage(inside=inside, input_ids=IDS, attention_mask=MASK)).numpy()
        token_states = states(encoder, IDS, MASK)
    vectors, counts = token_states, inside.bool().numpy()
    if codes:
        vectors = codes_by_hand(model.codes.detach().numpy(), token_states, counts)
        counts = np.ones(vectors.shape[:2], bool)
    np.testing.assert_allclose(
        actual, poly_by_hand(queries.numpy(), vectors, counts, np.eye(SIZE)), rtol=1e-4, atol=1e-4
    )


def codes_by_hand(codes, passages, counts, scale=1.0) -> np.ndarray:
    actual = []
    for all_tokens, counted in zip(passages, counts, strict=True):
        p = all_tokens[counted]
        exponents = np.exp((codes @ p.T - (codes @ p.T).max(1, keepdims=True)) * scale)
        actual.append(exponents / exponents.sum(1, keepdims=True) @ p)
    return np.array(actual)


@pytest.mark.parametrize("scaled", [False, True])
def test_codes_attend_to_the_tokens_and_the_query_to_the_codes(encoder, scaled):
    torch.manual_seed(1)
    model = PolyEncoder(encoder, project=False, scaled=scaled, codes=4)
    with torch.no_grad():
        queries = model.query(input_ids=IDS, attention_mask=MASK)
        vectors, counts = model.passage(input_ids=IDS, attention_mask=MASK)
        actual = model.scores(queries, (vectors, counts)).numpy()
    scale = SIZE**-0.5 if scaled else 1.0
    expected = codes_by_hand(model.codes.detach().numpy(), states(encoder, IDS, MASK), MASK.bool().numpy(), scale)
    assert vectors.shape == (3, 4, SIZE)
    assert counts.all()
    np.testing.assert_allclose(vectors.numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(actual, poly_by_hand(queries.numpy(), expected, counts.numpy(), scale=scale), rtol=1e-4)


def test_scores_of_a_poly_encoder_have_the_gradient_of_finite_differences(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", lambda self: self)
    torch.manual_seed(0)
    encoder = BertModel(config(hidden_size=4), add_pooling_layer=False)
    for options in ({"project": False}, {"project": True, "similarity": "cosine"}, {"scaled": True}):
        model = PolyEncoder(encoder, **options).double()
        queries = torch.randn(2, 4, dtype=torch.double, requires_grad=True)
        passages = torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True)
        counts = torch.tensor([[True, True, True], [True, False, True]])
        assert torch.autograd.gradcheck(lambda q, p, m=model, c=counts: m.scores(q, (p, c)), (queries, passages))


def test_scores_of_a_bi_encoder_have_the_gradient_of_finite_differences(encoder, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", lambda self: self)
    torch.manual_seed(0)
    queries, passages = (torch.randn(n, 6, dtype=torch.double, requires_grad=True) for n in (2, 3))
    for similarity in ("cosine", "dot"):
        model = BiEncoder(encoder, similarity=similarity, temperature=0.5)
        assert torch.autograd.gradcheck(lambda q, p, m=model: m.scores(q, p, 4), (queries, passages))


def test_the_exported_parts_of_a_poly_encoder_compute_the_same(encoder):
    model = PolyEncoder(encoder)
    names = ("input_ids", "attention_mask")
    queries = model.query(input_ids=IDS, attention_mask=MASK)
    tokens, _ = model.passage(input_ids=IDS, attention_mask=MASK)
    torch.testing.assert_close(PolyQueriesForExport(model, names)(IDS, MASK), queries)
    torch.testing.assert_close(PolyPassagesForExport(model, names)(IDS, MASK), tokens)


def test_a_cross_encoder_gives_one_score_for_a_pair():
    torch.manual_seed(0)
    classifier = BertForSequenceClassification(config(num_labels=1)).eval()
    model = CrossEncoder(classifier)
    inputs = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": torch.zeros_like(IDS)}
    actual = model(**inputs)
    assert actual.shape == (3,)
    assert actual.dtype == torch.float32
    bert = classifier.bert
    cls = states(bert, IDS, MASK)[:, 0]
    pooled = np.tanh(cls @ bert.pooler.dense.weight.detach().numpy().T + bert.pooler.dense.bias.detach().numpy())
    head = classifier.classifier
    expected = pooled @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(actual.detach().numpy(), expected[:, 0], atol=1e-5)
    torch.testing.assert_close(CrossEncoderForExport(model, tuple(inputs))(*inputs.values()), actual[:, None])
    actual.sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]


@pytest.mark.parametrize(("layers", "numbers"), [(2, [0, 5]), (3, [0, 2, 5]), (6, [0, 1, 2, 3, 4, 5])])
def test_a_smaller_encoder_has_the_first_and_the_last_layer(layers, numbers):
    torch.manual_seed(0)
    whole = BertModel(config(num_hidden_layers=6), add_pooling_layer=False)
    smaller = cut(whole, layers)
    assert smaller.config.num_hidden_layers == layers
    assert whole.config.num_hidden_layers == len(whole.encoder.layer) == 6
    assert len(smaller.encoder.layer) == layers
    for layer, number in zip(smaller.encoder.layer, numbers, strict=True):
        expected = whole.encoder.layer[number].state_dict()
        assert all(torch.equal(value, expected[name]) for name, value in layer.state_dict().items())
    assert smaller(input_ids=IDS, attention_mask=MASK).last_hidden_state.shape == (3, 5, SIZE)
