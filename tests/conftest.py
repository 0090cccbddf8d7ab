"""Fixtures that all tests share."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import capr
from capr.documents import Document, Problem

# Every run uses the same examples, without a time limit; `--hypothesis-profile=default` searches for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
# Most tests do not need the built-in models, which are slow.
os.environ["CAPR_WEIGHTS"] = os.devnull
sys.path.insert(0, str(Path(__file__).parent))  # makes `commands` and `sectioned` importable
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the public data sets, which are not part of the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the data sets are not at {SHARED_DATA} (see docs/reference/data.md)")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def built_in_models(request, monkeypatch):
    """Give the built-in models to tests with the mark `shipped`."""
    if request.node.get_closest_marker("shipped"):
        monkeypatch.delenv("CAPR_WEIGHTS")


@pytest.fixture
def read(tmp_path):
    """A function that writes a file, reads it, and returns the documents, the problems and the notices."""

    def read_file(name: str, content: bytes | str, **options) -> tuple[list[Document], list[Problem], list[Problem]]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        reading = capr.read(path, **options)
        documents = list(reading)
        problems = [p for p in reading.problems if not isinstance(p, capr.documents.Notice)]
        notices = [p for p in reading.problems if isinstance(p, capr.documents.Notice)]
        assert reading.errors == len(problems)
        for problem in reading.problems:  # every message has the file, the fact and the fix
            assert problem.file == str(path)
            assert problem.fact
            assert problem.fix
        return documents, problems, notices

    return read_file
