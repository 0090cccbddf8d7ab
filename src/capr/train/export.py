"""Exports a network to ONNX."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


def export(
    model: nn.Module, example: tuple[Tensor, ...], axes: dict[str, dict[int, str]], out: Path, name: str = "model"
) -> None:
    """Writes `model.onnx`, its weights in 8 bits, and beside it `model.fp32.onnx` to compare with."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    out.mkdir(parents=True, exist_ok=True)
    whole, small = out / f"{name}.fp32.onnx", out / f"{name}.onnx"
    export_whole(model, example, axes, whole)
    operations = ["MatMul", "Gather", "LSTM"]
    logging.disable(logging.WARNING)  # of the quantizer, that shapes could be inferred before, which changes nothing
    try:
        quantize_dynamic(whole, small, op_types_to_quantize=operations, weight_type=QuantType.QInt8, per_channel=True)
    finally:
        logging.disable(logging.NOTSET)


def export_whole(
    model: nn.Module, example: tuple[Tensor, ...], axes: dict[str, dict[int, str]], path: Path, output: str = "scores",
    axes_of_output: dict[int, str] | None = None,
) -> None:  # fmt: skip
    """Writes a network in 32 bits; the axes of its output are those of its first input, if nobody says."""
    changing = next(iter(axes.values())) if axes_of_output is None else axes_of_output
    with warnings.catch_warnings():  # of torch, to its own developers
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.cpu().float().eval(), example, str(path), input_names=list(axes), output_names=[output],
            dynamic_axes={**axes, output: changing}, opset_version=17, dynamo=False,
        )  # fmt: skip


class Exported(nn.Module):
    """The exported networks of a bi-, poly- or cross-encoder, with the methods of the model that they come from."""

    def __init__(self, model: Any, out: Path, suffix: str, names: tuple[str, ...]) -> None:
        import onnxruntime

        super().__init__()
        files = {side: out / f"{side}{suffix}" for side in ("model", "query")}
        self._sessions = {
            side: onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
            for side, file in files.items()
            if file.is_file()
        }
        self._model, self._names = model, names

    def forward(self, **inputs: Tensor) -> Tensor:
        return self._run("model", inputs)[:, 0]

    def query(self, **inputs: Tensor) -> Tensor:
        return self._run("query" if "query" in self._sessions else "model", inputs)

    def passage(self, **inputs: Tensor) -> Any:
        found = self._run("model", inputs)
        if found.ndim == 2:  # (passages, size)
            return found
        counts = torch.ones(found.shape[:2]) if self._model.codes is not None else inputs["attention_mask"]
        return found, counts.bool()  # (passages, pieces or codes, size)

    def scores(self, *given: Any) -> Tensor:
        with torch.no_grad():
            return self._model.scores(*given)

    def _run(self, side: str, inputs: dict[str, Tensor]) -> Tensor:
        (found, *_) = self._sessions[side].run(None, {name: inputs[name].numpy() for name in self._names})
        return torch.from_numpy(found)
