"""The registry of engines, and a library on an engine with only the required methods."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from capr.documents import CaprError, Document
from capr.index import ENGINES, Maintained, open_index
from capr.index.embedded.engine import EmbeddedIndex
from capr.search import Library
from capr.testing import ReferenceIndex


@pytest.fixture
def memory(monkeypatch):
    """Register `memory://`; return its open indexes by location."""
    module = ModuleType("engine_in_memory")
    indexes = {}

    def open_memory(location, create):
        if location not in indexes and not create:
            raise CaprError(f"there is no index {location}. Fix: add a document.")
        return indexes.setdefault(location, ReferenceIndex())

    module.open_memory = open_memory
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ENGINES, "memory", "engine_in_memory:open_memory")
    return indexes


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_opens_the_engine_that_ships(tmp_path, kind):
    location = kind(tmp_path / "a folder")
    open_index(location, create=True).close()
    index = open_index(location)
    assert isinstance(index, EmbeddedIndex)
    index.close()
    with pytest.raises(CaprError, match=r"there is no library .*other\. Fix: "):
        open_index(tmp_path / "other")


def test_a_scheme_selects_the_engine(memory):
    index = open_index("MEMORY://host/notes", create=True)
    assert memory == {"MEMORY://host/notes": index}
    assert open_index("MEMORY://host/notes") is index


def test_the_error_about_an_unknown_scheme_names_the_known_ones(memory):
    with pytest.raises(CaprError, match=r"there is no engine for nowhere://\. Fix: name a folder, or use memory://\."):
        open_index("nowhere://host/notes")


def test_a_library_needs_only_the_required_methods(memory):
    with Library("memory://notes", encoder="none") as library:
        notes = [Document(f"n{i}", f"PLAN: Fever {i}.\n\nDIET: Tea.", "", {"patient": f"p{i % 2}"}) for i in range(4)]
        assert library.add(notes).added == 4
        assert library.add([notes[0]]).unchanged == 1
        assert [hit.document for hit in library.search("fever", filters={"patient": "p1"})] == ["n1", "n3"]
        assert [hit.group for hit in library.search("fever", group="patient")] == ["p0", "p1"]
        (hit,) = library.within({"patient": "p1"}).search("1", neighbours=1)
        assert [neighbour.text for neighbour in hit.neighbours] == ["DIET: Tea."]
        assert library.remove("n0") == 1
        assert library.stats().documents == 3


def test_maintenance_of_an_engine_without_it_is_an_error(memory):
    with Library("memory://notes", encoder="none") as library:
        library.add(Document("n1", "Fever."))
        assert not isinstance(library.index, Maintained)
        for command in (library.verify, library.compact):
            with pytest.raises(CaprError, match=r"engine of memory://notes has no command .*Fix: use the tools of"):
                command()


def test_the_engine_that_ships_is_maintained(embedded):
    assert isinstance(embedded, Maintained)
    assert embedded.disk().keys() == {"documents"}
