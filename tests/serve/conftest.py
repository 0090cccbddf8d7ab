"""Fixtures of the server tests: a small library with three patients, and clients of a server in this process."""

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from capr.cli import app
from capr.search import Library
from capr.serve.application import application
from capr.serve.settings import Settings
from capr.serve.state import open_state
from capr.serve.tokens import TokenStore

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "search")]

from fake_reader import FakeReader  # noqa: E402
from served import DOCUMENTS, Client  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """Return a library of the documents with a word index alone."""
    with Library(tmp_path / "library", encoder="none", ranker="none") as library:
        library.add(DOCUMENTS)
    return tmp_path / "library"


@pytest.fixture
def state(folder):
    """Return the state of a server of that library."""
    return open_state(folder)


@pytest.fixture
def serve(folder):
    """Return a function that starts a server in this process and returns its client."""
    stack = ExitStack()

    def start(token="", reader=None, address="127.0.0.1", **settings):
        library = Library(folder, encoder="none", ranker="none", reader=reader or FakeReader())
        app = application(Settings(library=str(folder), **settings), library)
        client = stack.enter_context(Client(app, token, address))
        client.server = app.server
        deadline = time.monotonic() + 30
        while not client.server.is_ready and time.monotonic() < deadline:
            time.sleep(0.01)
        return client

    yield start
    stack.close()


@pytest.fixture
def client(serve):
    """Return a client of a server without tokens."""
    return serve()


@pytest.fixture
def tokens(state):
    """Return a function that creates tokens: `tokens("reader", patient=["A"])`."""
    store = TokenStore(state.tokens)

    def make(role="reader", name=None, days=None, **restrictions):
        return store.create(name or role, role, restrictions, days)[0]

    return make


@pytest.fixture
def trail(state):
    """Return a function that reads the entries of the audit trail."""

    def read():
        return [json.loads(line) for line in (state.audit / "audit.jsonl").read_text().splitlines()]

    return read


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs a command and returns its exit code, output and errors."""

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["capr", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            app()
        output = capsys.readouterr()
        return raised.value.code or 0, output.out, output.err

    return start
