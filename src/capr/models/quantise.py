"""Weights in 8 bits, and activations in 8 bits with a scale for each row.

ONNX Runtime's dynamic quantisation takes one scale for a whole tensor, so that the vector of a text depends on the
other texts of its batch. With a scale for each row, which is a word piece of a text, a network returns the same bits
for a text in any batch, and stays closer to 32 bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

OFFSET = 128  # the zero point of activations, which are unsigned
LARGEST = 127
FLOAT = 1  # the number of the type in ONNX
DOMAIN, PRODUCT = "com.microsoft", "MatMulIntegerToFloat"  # a product of integers, times the scales of its columns
SMALLEST_SCALE = 1e-12
TINY, STEP, ONE, ZERO = "rows.tiny", "rows.step", "rows.one", "rows.zero"  # the names of the constants


def quantise_rows(source: Path, target: Path) -> None:
    """Write a network with its matrix products and embeddings in 8 bits.

    A weight matrix has a scale for each of its columns, an embedding table one for each of its rows.

    Args:
        source: the network in 32 bits.
        target: the file to write.
    """
    import onnx

    model = onnx.load(str(source))
    _Rewriter(model.graph).rewrite()
    if all(opset.domain != DOMAIN for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    onnx.save(model, str(target))


class _Rewriter:
    """Replaces the nodes of a graph."""

    def __init__(self, graph: Any) -> None:
        from onnx import numpy_helper

        self._graph = graph
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self._to_array, self._to_tensor = numpy_helper.to_array, numpy_helper.from_array
        self._nodes: list[Any] = []
        self._new_weights: dict[str, Any] = {}
        self._quantised: dict[str, str] = {}  # by activation, the prefix of the names of its codes and scales

    def rewrite(self) -> None:
        for node in self._graph.node:
            weight = self._weights.get(node.input[1 if node.op_type == "MatMul" else 0]) if node.input else None
            if node.op_type == "MatMul" and weight is not None and len(weight.dims) == 2:
                self._product(node, weight)
            elif node.op_type == "Gather" and weight is not None and _is_table(weight, node):
                self._look_up(node, weight)
            else:
                self._nodes.append(node)
        used = {name for node in self._nodes for name in node.input}
        used_weights = [tensor for name, tensor in self._weights.items() if name in used]
        del self._graph.node[:], self._graph.initializer[:]
        self._graph.node.extend(self._nodes)
        self._graph.initializer.extend([*used_weights, *self._new_weights.values()])

    def _product(self, node: Any, weight: Any) -> None:
        """Replace a product of activations and weights by one of integers, times both scales."""
        name, (output,) = weight.name, node.output
        self._add_codes(name, axis=0)
        activation = self._activation(node.input[0])
        inputs = [f"{activation}.codes", f"{name}_quantized", ONE, f"{name}_scale", ZERO]
        self._node(PRODUCT, inputs, f"{output}.columns", domain=DOMAIN)  # one pass over the integers
        self._node("Mul", [f"{output}.columns", f"{activation}.scale"], output)

    def _look_up(self, node: Any, weight: Any) -> None:
        """Replace a row of a table by its codes times its scale."""
        name, ids, (output,) = weight.name, node.input[1], node.output
        self._add_codes(name, axis=1)
        self._node("Gather", [f"{name}_quantized", ids], f"{output}.codes")
        self._node("Cast", [f"{output}.codes"], f"{output}.floats", to=FLOAT)
        self._node("Gather", [f"{name}_scale", ids], f"{output}.scale")
        self._node("Mul", [f"{output}.floats", f"{output}.scale"], output)

    def _activation(self, name: str) -> str:
        """Quantise an activation, once for all products that read it; return the prefix of the new names."""
        if name not in self._quantised:
            prefix = self._quantised[name] = f"{name}.rows"
            for constant, value in ((TINY, SMALLEST_SCALE), (STEP, 1 / LARGEST), (ONE, 1.0)):
                self._constant(constant, np.array(value, np.float32))
            self._constant(ZERO, np.array(OFFSET, np.uint8))
            self._node("ReduceMax", [name], f"{prefix}.highest", axes=[-1], keepdims=1)
            self._node("ReduceMin", [name], f"{prefix}.lowest", axes=[-1], keepdims=1)
            self._node("Neg", [f"{prefix}.lowest"], f"{prefix}.depth")
            self._node("Max", [f"{prefix}.highest", f"{prefix}.depth", TINY], f"{prefix}.range")
            self._node("Mul", [f"{prefix}.range", STEP], f"{prefix}.scale")
            self._node("Reciprocal", [f"{prefix}.scale"], f"{prefix}.inverse")  # multiplying is faster than dividing
            self._node("Mul", [name, f"{prefix}.inverse"], f"{prefix}.scaled")
            self._node("QuantizeLinear", [f"{prefix}.scaled", ONE, ZERO], f"{prefix}.codes")
        return self._quantised[name]

    def _add_codes(self, name: str, axis: int) -> None:
        """Add the codes and scales of a weight matrix, with one scale for each column (axis 0) or row (axis 1)."""
        values = self._to_array(self._weights[name]).astype(np.float32)
        codes, scales = quantise(values, axis)
        self._constant(f"{name}_quantized", codes)
        self._constant(f"{name}_scale", scales[0] if axis == 0 else scales)

    def _constant(self, name: str, value: NDArray[Any]) -> None:
        self._new_weights.setdefault(name, self._to_tensor(value, name))

    def _node(self, operation: str, inputs: list[str], output: str, **attributes: Any) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(operation, inputs, [output], **attributes))


def quantise(values: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return signed codes of 8 bits and the scales along an axis, such that codes * scales is close to the values.

    >>> codes, scales = quantise(np.array([[1.0, 0.5], [-2.0, 0.25]], np.float32), 0)
    >>> codes.tolist(), (127 * scales).tolist()
    ([[64, 127], [-127, 64]], [[2.0, 0.5]])
    """
    largest = np.abs(values).max(axis=axis, keepdims=True)
    scales = np.maximum(largest, SMALLEST_SCALE).astype(np.float32) / np.float32(LARGEST)
    return np.rint(values / scales).astype(np.int8), scales


def _is_table(tensor: Any, node: Any) -> bool:
    """Return whether a Gather node looks up rows of a table of floats."""
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    return tensor.data_type == FLOAT and len(tensor.dims) == 2 and axis == 0
