"""Reads torch weights from a BERT that was exported to ONNX in 8 bits, to train built-in models further."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capr.documents import CaprError

PREFIXES = ("model.passage_encoder.", "model.classifier.", "model.answerer.")  # in models that capr exported
HEADS = ("classifier.", "pooler.")
NEW_HEAD = "qa_outputs."  # a ranker that becomes a reader has no such head yet
PRODUCTS = ("MatMulInteger", "MatMulIntegerToFloat")
STEPS = 4  # nodes between a product and its bias: a cast, and products with scales


def is_exported(folder: Path) -> bool:
    """Return whether a folder has a model in ONNX and its configuration, but no torch weights."""
    complete = all((folder / name).is_file() for name in ("model.onnx", "config.json"))
    return complete and not any((*folder.glob("*.safetensors"), *folder.glob("pytorch_model*")))


def load(kind: Any, folder: Path, **options: Any) -> Any:
    """Load a model of a Hugging Face class with the weights of a folder.

    Raises:
        CaprError: the exported network lacks weights of the model.
    """
    from transformers import AutoConfig

    model = kind.from_config(AutoConfig.from_pretrained(folder, **options)).eval()
    prefix = f"{model.base_model_prefix}."  # the encoder's weights in a model with a head
    state, names = weights(folder / "model.onnx"), model.state_dict().keys()
    headless = not any(name.removeprefix(prefix).startswith(HEADS) for name in state)
    state = {name.removeprefix(prefix): weight for name, weight in state.items()}
    if any(name.startswith(prefix) for name in names):
        state = {prefix + name if prefix + name in names else name: weight for name, weight in state.items()}
    missing = model.load_state_dict(state, strict=False).missing_keys
    missing = [name for name in missing if not name.startswith(NEW_HEAD)]
    if headless:  # an encoder has no head, and a reader has another
        missing = [name for name in missing if not name.removeprefix(prefix).startswith(HEADS)]
    if missing:
        fix = "name the folder of a BERT trained by capr train, or a Hugging Face checkpoint"
        raise CaprError(f"{folder / 'model.onnx'} has no {missing[0]}. Fix: {fix}.")
    return model


def weights(path: Path) -> dict[str, Tensor]:
    """Return the weights by their names in the Hugging Face model."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    state = {name: array for name, array in arrays.items() if name.endswith((".weight", ".bias"))}
    for name, array in arrays.items():
        plain = name.removesuffix("_quantized")
        if plain == name:
            continue
        scale, zero = arrays[f"{plain}_scale"], np.float32(arrays.get(f"{plain}_zero_point", 0))
        weight = (array.astype(np.float32) - zero) * scale
        (reader, *_) = readers[name]
        if reader.op_type not in PRODUCTS:  # an embedding
            state[plain] = weight
        elif plain.endswith(".weight"):
            state[plain] = weight.T
        elif bias := _bias(reader, readers, arrays):  # the product has no name, so take that of its bias
            state[f"{bias.removesuffix('.bias')}.weight"] = weight.T
    return {_strip_prefix(name): torch.from_numpy(np.array(array, order="C")) for name, array in state.items()}


def _bias(node: Any, readers: dict[str, list[Any]], arrays: dict[str, Any]) -> str | None:
    """Return the name of the bias of a product."""
    outputs = [node.output[0]]
    for _ in range(STEPS):
        following = [reader for output in outputs for reader in readers.get(output, [])]
        added = [name for reader in following if reader.op_type == "Add" for name in reader.input if name in arrays]
        if added:
            return str(added[0])
        outputs = [output for reader in following if reader.op_type in ("Cast", "Mul") for output in reader.output]
    return None


def _strip_prefix(name: str) -> str:
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name
