"""What the tests of the index share; `reference` can be imported from here on."""

import sys
from pathlib import Path

import pytest

from capr.index import EmbeddedIndex

sys.path.insert(0, str(Path(__file__).parent))

from reference import ReferenceIndex, encoder_folder, ranker_folder


@pytest.fixture(params=["embedded", "reference"])
def index(request, tmp_path):
    """Each engine in turn, empty."""
    engine = EmbeddedIndex(tmp_path / "library", create=True) if request.param == "embedded" else ReferenceIndex()
    yield engine
    engine.close()


@pytest.fixture
def embedded(tmp_path):
    engine = EmbeddedIndex(tmp_path / "library", create=True)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """The folder of an encoder that reads letters."""
    return encoder_folder(tmp_path_factory.mktemp("models") / "encoder", pooling="mean")


@pytest.fixture(scope="session")
def tiny_ranker(tmp_path_factory):
    return ranker_folder(tmp_path_factory.mktemp("models") / "ranker")
