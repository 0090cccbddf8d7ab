"""Objectives of small families, and the parts of a small world to train and to validate on."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from small_families import family


@pytest.fixture(scope="module")
def parts(world):
    training, held_out = world.split(0.3, 1)
    return training, held_out, list(held_out.lists(12, 40, 1))


@pytest.fixture
def build(bert, parts):
    def built(kind="bi", base=bert, **settings):
        torch.manual_seed(1)
        return family(kind, base, **settings).objective(parts[0], "cpu")

    return built
