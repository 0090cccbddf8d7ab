"""Networks in 8 bits: the same bits for a text in any batch, and close to 32 bits."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import BertConfig, BertModel

from capr.models.bi import BiEncoder, BiEncoderForExport
from capr.models.export import export, piece_example
from capr.models.from_onnx import weights

NAMES = ("input_ids", "attention_mask", "token_type_ids")
SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random encoder with outliers among its activations, as trained ones have, in 32 bits and in 8."""
    folder = tmp_path_factory.mktemp("network")
    torch.manual_seed(0)
    encoder = BertModel(BertConfig(vocab_size=300, max_position_embeddings=64, **SIZES), add_pooling_layer=False).eval()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter += torch.randn_like(parameter) * 0.05  # equal weights would be stored once
        for layer in encoder.encoder.layer:
            layer.output.LayerNorm.weight[:3] *= 10
    export(BiEncoderForExport(BiEncoder(encoder), encoder, NAMES), *piece_example(NAMES, "texts"), folder)
    quantize_dynamic(
        folder / "model.fp32.onnx",
        folder / "tensor.onnx",
        op_types_to_quantize=["MatMul", "Gather"],
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    return folder


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [rng.integers(5, 300, rng.integers(3, 60)) for _ in range(24)]


def session(path, threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options)


def vectors(network, texts, size):
    """Encode texts in batches of a size; return a row for each text."""
    rows = []
    for begin in range(0, len(texts), size):
        batch = texts[begin : begin + size]
        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        for row, text in enumerate(batch):
            ids[row, : len(text)] = text
        inputs = {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64), "token_type_ids": np.zeros_like(ids)}
        rows.append(network.run(None, {entry.name: inputs[entry.name] for entry in network.get_inputs()})[0])
    return np.concatenate(rows)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_vector_depends_on_its_text_alone(folder, texts, threads):
    network = session(folder / "model.onnx", threads)
    alone = vectors(session(folder / "model.onnx"), texts, 1)
    order = np.random.default_rng(1).permutation(len(texts))
    for size in (1, 2, 7, len(texts)):
        assert np.array_equal(vectors(network, texts, size), alone)
        assert np.array_equal(vectors(network, [texts[i] for i in order], size), alone[order])


def test_a_scale_for_each_row_is_closer_to_32_bits_than_one_for_the_tensor(folder, texts):
    whole, rows, tensor = (
        vectors(session(folder / f"{name}.onnx"), texts, 8) for name in ("model.fp32", "model", "tensor")
    )
    distance, other_distance = (1 - (whole * other).sum(1) for other in (rows, tensor))
    assert distance.max() < 0.01
    assert distance.mean() < other_distance.mean()


def test_all_matrices_and_tables_are_in_8_bits(folder):
    graph = onnx.load(folder / "model.onnx").graph
    whole = [tensor.name for tensor in graph.initializer if tensor.data_type == 1 and len(tensor.dims) == 2]
    assert all(name.endswith("_scale") for name in whole)
    assert not [node.name for node in graph.node if node.op_type == "DynamicQuantizeLinear"]
    sizes = [(folder / name).stat().st_size for name in ("model.onnx", "model.fp32.onnx")]
    assert sizes[0] < 0.6 * sizes[1]


def test_torch_weights_are_restored_to_half_a_step(folder):
    whole = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in onnx.load(folder / "model.fp32.onnx").graph.initializer
    }
    restored = weights(folder / "model.onnx")
    table = "embeddings.word_embeddings.weight"
    original = next(array for name, array in whole.items() if name.endswith(table))
    steps = np.abs(original).max(axis=1, keepdims=True) / 127
    assert (np.abs(restored[table].numpy() - original) <= 0.5001 * steps).all()
    assert restored["encoder.layer.0.intermediate.dense.weight"].shape == (128, 64)
    assert len([name for name in restored if name.endswith("query.weight")]) == 3
