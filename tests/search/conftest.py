"""What the tests of libraries share."""

import pytest

from capr.search import Library


@pytest.fixture
def path(tmp_path):
    return tmp_path / "library"


@pytest.fixture
def opened(path):
    """Opens the library, and closes it in the end."""
    libraries = []

    def again(**options):
        libraries.append(Library(path, **options))
        return libraries[-1]

    yield again
    for library in libraries:
        library.close()
