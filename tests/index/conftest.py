"""Fixtures for the tests of the index; puts `reference` on the import path."""

import sys
from pathlib import Path

import pytest

from capr.index.embedded.engine import EmbeddedIndex

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def embedded(tmp_path):
    engine = EmbeddedIndex(tmp_path / "library", create=True)
    yield engine
    engine.close()
