"""Fixtures for tests of discourse models in libraries."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from gout import ARTICLES, WordDiscourse


@pytest.fixture
def library(opened):
    filled = opened(discourse=WordDiscourse())
    filled.add(ARTICLES)
    return filled
