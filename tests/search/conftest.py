"""Fixtures for tests of libraries. The tests can import the tiny models of the index's tests."""

import sys
from pathlib import Path

import pytest

from capr.search import Library

sys.path.insert(0, str(Path(__file__).parents[1] / "index"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "library"


@pytest.fixture
def opened(path):
    """Return a function that opens the library; the fixture closes it."""
    libraries = []

    def open_library(**options):
        libraries.append(Library(path, **options))
        return libraries[-1]

    yield open_library
    for library in libraries:
        library.close()
