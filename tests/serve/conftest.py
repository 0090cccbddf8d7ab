"""What the tests of the server share: a small library with three patients, and clients of a server in this process."""

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from capr.search import Library
from capr.serve.application import application
from capr.serve.settings import Settings
from capr.serve.tokens import Tokens

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "search")]

from fake_reader import FakeReader  # noqa: E402
from served import DOCUMENTS, Client  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """A library with the documents, made by words alone."""
    with Library(tmp_path / "library", encoder="none", ranker="none") as library:
        library.add(DOCUMENTS)
    return tmp_path / "library"


@pytest.fixture
def serve(folder):
    """Starts a server in this process, and gives a client of it."""
    stack = ExitStack()

    def start(token="", reader=None, address="127.0.0.1", **settings):
        library = Library(folder, encoder="none", ranker="none", reader=reader or FakeReader())
        app = application(Settings(library=str(folder), **settings), library)
        client = stack.enter_context(Client(app, token, address))
        client.server = app.server
        until = time.monotonic() + 30
        while not client.server.is_ready and time.monotonic() < until:
            time.sleep(0.01)
        return client

    yield start
    stack.close()


@pytest.fixture
def client(serve):
    """A client of a server without tokens."""
    return serve()


@pytest.fixture
def tokens(folder):
    """Makes tokens: `tokens("reader", patient=["A"])`."""
    kept = Tokens(folder)

    def make(role="reader", name=None, days=None, **restrictions):
        return kept.create(name or role, role, restrictions, days)[0]

    return make


@pytest.fixture
def trail(folder):
    """The entries of the audit trail."""

    def read():
        return [json.loads(line) for line in (folder / "audit" / "audit.jsonl").read_text().splitlines()]

    return read
