"""Exports a network to ONNX."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn


def export(
    model: nn.Module, example: tuple[Tensor, ...], axes: dict[str, dict[int, str]], out: Path, name: str = "model"
) -> None:
    """Writes `model.onnx`, its weights in 8 bits, and beside it `model.fp32.onnx` to compare with."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    out.mkdir(parents=True, exist_ok=True)
    whole, small = out / f"{name}.fp32.onnx", out / f"{name}.onnx"
    with warnings.catch_warnings():  # of torch, to its own developers
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.cpu().float().eval(), example, str(whole), input_names=list(axes), output_names=["scores"],
            dynamic_axes={**axes, "scores": next(iter(axes.values()))}, opset_version=17, dynamo=False,
        )  # fmt: skip
    operations = ["MatMul", "Gather", "LSTM"]
    quantize_dynamic(whole, small, op_types_to_quantize=operations, weight_type=QuantType.QInt8, per_channel=True)
