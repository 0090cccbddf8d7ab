"""Exports a network to ONNX."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from capr.models.quantise import quantise_rows


def export(
    model: nn.Module,
    example: tuple[Tensor, ...],
    axes: dict[str, dict[int, str]],
    out: Path,
    name: str = "model",
    outputs: dict[str, dict[int, str]] | None = None,
) -> None:
    """Write `model.onnx` with weights in 8 bits, and `model.fp32.onnx` for comparison.

    Args:
        model: the network.
        example: example inputs for tracing.
        axes: the axes of variable length, by the name of the input.
        out: the output folder.
        name: the name of the files, without suffixes.
        outputs: the axes of variable length, by the name of the output. Default: `scores`, with the axes of the first
            input.
    """
    out.mkdir(parents=True, exist_ok=True)
    whole, small = out / f"{name}.fp32.onnx", out / f"{name}.onnx"
    export_whole(model, example, axes, whole, outputs)
    quantise_rows(whole, small)
    if any(isinstance(module, nn.LSTM) for module in model.modules()):
        _quantise_recurrent(small)


def _quantise_recurrent(path: Path) -> None:
    """Quantise the LSTMs of a network, which ONNX Runtime does with one scale for a whole input."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.disable(logging.WARNING)  # the quantizer recommends shape inference, which would change nothing here
    try:
        quantize_dynamic(path, path, op_types_to_quantize=["LSTM"], weight_type=QuantType.QInt8, per_channel=True)
    finally:
        logging.disable(logging.NOTSET)


def piece_example(names: Sequence[str], rows: str) -> tuple[tuple[Tensor, ...], dict[str, dict[int, str]]]:
    """Return example word pieces for each input of a network, and the axes of each input."""
    return tuple(torch.ones(2, 8, dtype=torch.long) for _ in names), {name: {0: rows, 1: "pieces"} for name in names}


def export_whole(
    model: nn.Module,
    example: tuple[Tensor, ...],
    axes: dict[str, dict[int, str]],
    path: Path,
    outputs: dict[str, dict[int, str]] | None = None,
) -> None:
    """Write a network in 32 bits; see `export`."""
    outputs = {"scores": next(iter(axes.values()))} if outputs is None else outputs
    for module in model.modules():
        set_attention = getattr(module, "set_attn_implementation", None)
        if callable(set_attention):  # a Hugging Face model; plain attention becomes fewer and faster nodes
            set_attention("eager")
    with warnings.catch_warnings():  # torch warns its own developers
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.cpu().float().eval(),
            example,
            str(path),
            input_names=list(axes),
            output_names=list(outputs),
            dynamic_axes={**axes, **outputs},
            opset_version=17,
            dynamo=False,
        )


class Exported(nn.Module):
    """An exported network as a torch module: inputs by name to the first output."""

    def __init__(self, file: Path, names: Sequence[str]) -> None:
        import onnxruntime

        super().__init__()
        self._session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        self._names = names

    def forward(self, **inputs: Tensor) -> Tensor:
        return self.outputs(**inputs)[0]

    def outputs(self, **inputs: Tensor) -> list[Tensor]:
        """Return all outputs of the network."""
        outputs = self._session.run(None, {name: inputs[name].numpy() for name in self._names})
        return [torch.from_numpy(output) for output in outputs]
