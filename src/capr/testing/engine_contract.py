"""The contract of an engine: subclass it, give it a fixture `index`, and run pytest."""

from __future__ import annotations

from capr.testing.changes import Changes
from capr.testing.contents import Contents
from capr.testing.filtering import Filtering
from capr.testing.meaning import Meaning
from capr.testing.parts import Parts
from capr.testing.spaces import Spaces
from capr.testing.words import LexicalSearch


class EngineContract(Changes, LexicalSearch, Meaning, Filtering, Spaces, Contents, Parts):
    """All tests that every engine must pass.

    A subclass has a fixture `index`: a new, empty index for each test, closed after it.

    Example:
        class TestMyEngine(EngineContract):
            @pytest.fixture
            def index(self, tmp_path):
                with closing(open_my_engine(tmp_path)) as index:
                    yield index
    """
