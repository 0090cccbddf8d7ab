"""Fixtures of the runtime tests. They put tests/index on the import path, for its tiny models."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "index"))

from reference import encoder_folder, ranker_folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """The folder of an encoder that reads letters."""
    return encoder_folder(tmp_path_factory.mktemp("models") / "encoder", pooling="mean")


@pytest.fixture(scope="session")
def tiny_ranker(tmp_path_factory):
    """The folder of a ranker that reads letters."""
    return ranker_folder(tmp_path_factory.mktemp("models") / "ranker")
