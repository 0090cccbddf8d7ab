"""Removes layers of an encoder: a small encoder starts with the weights of a large one."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from capr.documents import CaprError


def cut(encoder: Any, layers: int) -> Any:
    """Return a copy of a BERT encoder with some evenly spaced layers, including the first and the last."""
    if not hasattr(encoder, "encoder") or layers > len(encoder.encoder.layer):
        fact = f"it has {len(encoder.encoder.layer)}" if hasattr(encoder, "encoder") else "it is not a BERT"
        raise CaprError(f"{layers} layers of the base cannot be kept: {fact}. Fix: leave out --layers.")
    smaller = copy.deepcopy(encoder)
    keep = torch.linspace(0, len(encoder.encoder.layer) - 1, layers).round().int().tolist()
    smaller.encoder.layer = nn.ModuleList(smaller.encoder.layer[i] for i in keep)
    smaller.config.num_hidden_layers = layers
    return smaller


def cut_inside(model: Any, layers: int) -> None:
    """Reduce the encoder of a model with a head to the number of layers."""
    name = model.base_model_prefix
    setattr(model, name, cut(getattr(model, name), layers))
    model.config.num_hidden_layers = layers
