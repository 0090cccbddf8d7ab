"""Torch weights out of a BERT that was exported to ONNX in 8 bits, so that what ships can be trained further."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capr.documents import CaprError

INSIDE = ("model.passage_encoder.", "model.classifier.", "model.answerer.")  # what `capr.train` exports
HEADS = ("classifier.", "pooler.")
NEW = "qa_outputs."  # which a ranker that becomes a reader does not have
STEPS = 4  # between a product and its bias: a cast, and products with scales


def is_exported(folder: Path) -> bool:
    """Whether a folder has a model in ONNX and what it takes to build it in torch, but no weights for torch."""
    whole = all((folder / name).is_file() for name in ("model.onnx", "config.json"))
    return whole and not any((*folder.glob("*.safetensors"), *folder.glob("pytorch_model*")))


def load(kind: Any, folder: Path, **options: Any) -> Any:
    """The model of a class of Hugging Face with the weights of a folder.

    Raises:
        CaprError: the network has not all that the model needs.
    """
    from transformers import AutoConfig

    model = kind.from_config(AutoConfig.from_pretrained(folder, **options)).eval()
    prefix = f"{model.base_model_prefix}."  # of an encoder's weights in a model with a head
    found, wanted = weights(folder / "model.onnx"), model.state_dict()
    encoder = not any(name.startswith(prefix) for name in found)
    found = {name.removeprefix(prefix): weight for name, weight in found.items()}
    if any(name.startswith(prefix) for name in wanted):
        found = {prefix + name if prefix + name in wanted else name: weight for name, weight in found.items()}
    missing = [name for name in model.load_state_dict(found, strict=False).missing_keys if not name.startswith(NEW)]
    if encoder:  # which has no head
        missing = [name for name in missing if not name.removeprefix(prefix).startswith(HEADS)]
    if missing:
        fix = "name a folder that capr train has made of a BERT, or a Hugging Face checkpoint"
        raise CaprError(f"{folder / 'model.onnx'} has no {missing[0]}. Fix: {fix}.")
    return model


def weights(path: Path) -> dict[str, Tensor]:
    """The weights by their names in Hugging Face's model."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    found = {name: array for name, array in arrays.items() if name.endswith((".weight", ".bias"))}
    for name, array in arrays.items():
        plain = name.removesuffix("_quantized")
        if plain == name:
            continue
        scale, zero = arrays[f"{plain}_scale"], arrays[f"{plain}_zero_point"].astype(np.float32)
        whole = (array.astype(np.float32) - zero) * scale
        (reader, *_) = readers[name]
        if reader.op_type != "MatMulInteger":  # an embedding
            found[plain] = whole
        elif plain.endswith(".weight"):
            found[plain] = whole.T
        elif bias := _bias(reader, readers, arrays):  # a product has no name, but what is added to it has
            found[f"{bias.removesuffix('.bias')}.weight"] = whole.T
    return {_inside(name): torch.from_numpy(np.array(array, order="C")) for name, array in found.items()}


def _bias(node: Any, readers: dict[str, list[Any]], arrays: dict[str, Any]) -> str | None:
    """The bias that is added to a product."""
    outputs = [node.output[0]]
    for _ in range(STEPS):
        following = [reader for output in outputs for reader in readers.get(output, [])]
        added = [name for reader in following if reader.op_type == "Add" for name in reader.input if name in arrays]
        if added:
            return str(added[0])
        outputs = [output for reader in following if reader.op_type in ("Cast", "Mul") for output in reader.output]
    return None


def _inside(name: str) -> str:
    for prefix in INSIDE:
        name = name.removeprefix(prefix)
    return name
