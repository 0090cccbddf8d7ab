"""What the tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

import capr
from capr.documents import Document, Problem

# The same examples in every run, however slow the machine; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
# Most tests are about something else than the models that ship, and those take their time.
os.environ["CAPR_WEIGHTS"] = os.devnull
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The public data sets that train and measure capr; they are not part of the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the data sets are not at {SHARED_DATA} (docs/data.md says what they are)")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def what_ships(request, monkeypatch):
    """Gives tests that are marked with `shipped` the models that ship."""
    if request.node.get_closest_marker("shipped"):
        monkeypatch.delenv("CAPR_WEIGHTS")


@pytest.fixture
def read(tmp_path):
    """Writes a file and reads it: the documents, the problems that lost something, and the notices."""

    def read_file(name: str, content: bytes | str, **options) -> tuple[list[Document], list[Problem], list[Problem]]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        reading = capr.read(path, **options)
        documents = list(reading)
        problems = [p for p in reading.problems if not isinstance(p, capr.documents.Notice)]
        notices = [p for p in reading.problems if isinstance(p, capr.documents.Notice)]
        assert reading.errors == len(problems)
        for problem in reading.problems:  # every message says where, what and how to mend it
            assert problem.file == str(path)
            assert problem.fact
            assert problem.fix
        return documents, problems, notices

    return read_file
