"""Small families of rankers for the tests of the training loop."""

import torch

from capr.models.bi import Bi
from capr.models.cross import Cross
from capr.models.family import Schedule
from capr.models.poly import Poly

SCHEDULE = Schedule(epochs=3, batch=8, learning_rate=1e-3, patience=0, device="cpu")
READING = {"negatives": 1, "pieces": 32, "views": (("text", 1.0),), "short": 0.0}
KINDS = {"bi": Bi, "poly": Poly, "cross": Cross}


def family(kind, base, **settings):
    """A family with the settings of these tests."""
    return KINDS[kind](base=str(base), **{**READING, **settings})


def weights(objective) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in objective.model.state_dict().items()}


def same(weights_a: dict[str, torch.Tensor], weights_b: dict[str, torch.Tensor]) -> bool:
    return weights_a.keys() == weights_b.keys() and all(
        torch.equal(weights_a[name], weights_b[name]) for name in weights_a
    )
