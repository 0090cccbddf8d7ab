"""Fewer layers: how a large encoder becomes the beginning of a small one."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from capr.documents import CaprError


def cut(encoder: Any, layers: int) -> Any:
    """A copy of a BERT encoder with that many of its layers, evenly spaced, the first and the last among them."""
    if not hasattr(encoder, "encoder") or layers > len(encoder.encoder.layer):
        fact = f"it has {len(encoder.encoder.layer)}" if hasattr(encoder, "encoder") else "it is no BERT"
        raise CaprError(f"{layers} layers of the base cannot be kept: {fact}. Fix: leave out --layers.")
    smaller = copy.deepcopy(encoder)
    keep = torch.linspace(0, len(encoder.encoder.layer) - 1, layers).round().int().tolist()
    smaller.encoder.layer = nn.ModuleList(smaller.encoder.layer[i] for i in keep)
    smaller.config.num_hidden_layers = layers
    return smaller


def cut_inside(model: Any, layers: int) -> None:
    """Leaves so many layers of the encoder in a model that has a head on it."""
    name = model.base_model_prefix
    setattr(model, name, cut(getattr(model, name), layers))
    model.config.num_hidden_layers = layers
