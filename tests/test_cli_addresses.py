"""Addresses of other engines, `scheme://...`, as the libraries of commands."""

import sys
from types import ModuleType

import pytest
from commands import run

from capr.index import ENGINES
from capr.index.engines import FOLDER
from capr.serve.settings import Settings
from capr.testing import ReferenceIndex

UNKNOWN = "elsewhere://ward-3: there is no engine for elsewhere://. Fix: name a folder."


@pytest.fixture(autouse=True)
def only_folders(monkeypatch):
    """Forget the engines that other tests registered, such as the example of the cluster guide."""
    for name in [name for name in ENGINES if name != FOLDER]:
        monkeypatch.delitem(ENGINES, name)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "n1.txt").write_text("PLAN: Start aspirin for the heart attack.\n")
    return tmp_path


class LastingIndex(ReferenceIndex):
    def close(self):  # the documents stay for the next command
        pass


@pytest.fixture
def indexes(monkeypatch):
    """Register `memory://`; return its indexes by address."""
    module = ModuleType("engine_in_memory")
    indexes = {}
    module.open_memory = lambda address, create: indexes.setdefault(address, LastingIndex())
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ENGINES, "memory", "engine_in_memory:open_memory")
    return indexes


@pytest.mark.parametrize(
    "command",
    [
        ("index", "elsewhere://ward-3", "n1.txt"),
        ("search", "elsewhere://ward-3", "aspirin"),
        ("ask", "elsewhere://ward-3", "Which drug?"),
        ("scores", "elsewhere://ward-3", "n1.txt", "--entity", "aspirin"),
        ("serve", "elsewhere://ward-3"),
        ("audit", "elsewhere://ward-3"),
        ("remove", "elsewhere://ward-3", "n1.txt"),
        ("encode", "elsewhere://ward-3"),
        ("stats", "elsewhere://ward-3"),
        ("verify", "elsewhere://ward-3"),
        ("compact", "elsewhere://ward-3"),
        ("export", "elsewhere://ward-3"),
        ("token", "create", "elsewhere://ward-3", "--name", "ward 3"),
        ("token", "list", "elsewhere://ward-3"),
        ("token", "revoke", "elsewhere://ward-3", "ward 3"),
    ],
    ids=lambda command: " ".join(command[: command.index("elsewhere://ward-3")]),
)
def test_an_unknown_scheme_is_an_error_and_makes_no_folder(folder, command):
    assert str(run(folder, *command, code=1).exception) == UNKNOWN
    assert [path.name for path in folder.iterdir()] == ["n1.txt"]


def test_commands_open_the_address_of_a_known_engine(folder, indexes):
    result = run(folder, "index", "memory://ward-3", "n1.txt", "--encoder", "none")
    assert "documents: 1 added (1 passage); now 1 in memory://ward-3" in result.stdout
    assert "Fix: capr encode memory://ward-3 " in result.output
    assert "n1.txt" in run(folder, "search", "memory://ward-3", "aspirin", "--ranker", "none").stdout
    run(folder, "token", "create", "memory://ward-3", "--name", "ward 3", "--state", "state")
    assert "ward 3" in run(folder, "token", "list", "memory://ward-3", "--state", "state").stdout
    assert list(indexes) == ["memory://ward-3"]
    assert sorted(path.name for path in folder.iterdir()) == ["n1.txt", "state"]


def test_the_server_gets_the_address(folder, indexes, monkeypatch):
    served: list[Settings] = []
    monkeypatch.setattr("capr.serve.launcher.serve", lambda settings, announce: served.append(settings))
    run(folder, "serve", "memory://ward-3", "--state", "state")
    assert served[0].library == "memory://ward-3"


def test_the_scheme_folder_names_a_folder(folder):
    run(folder, "index", "folder://library", "n1.txt", "--encoder", "none")
    assert (folder / "library" / "library.db").is_file()
    assert "now 1 in library" in run(folder, "index", "library/", "n1.txt", "--encoder", "none").stdout
