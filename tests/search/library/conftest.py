"""Fixtures for tests of libraries."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from notes import NOTES, WordEncoder


@pytest.fixture
def library(opened):
    """Return a library with the notes, without an encoder."""
    filled = opened()
    filled.add(NOTES)
    return filled


@pytest.fixture
def encoded(opened):
    """Return a library with the notes and an encoder."""
    filled = opened(encoder=WordEncoder())
    filled.add(NOTES)
    return filled
