"""Another process replaces or removes a document during a search: hits show one state of it, or leave it out."""

import pytest
from reference import WordDiscourse

from capr.annotate import Query
from capr.documents import Document
from capr.search import Library

BEFORE = "PLAN: Fever and rest.\n\nDIET: Tea.\n\nSLEEP: Long."
AFTER = "DIET: Soup.\n\nSLEEP: Short.\n\nPLAN: Nothing."


@pytest.fixture
def library(opened):
    library = opened(encoder="none", discourse=WordDiscourse())
    library.add(
        [
            Document("a", BEFORE, "Old", {"patient": "p1"}),
            Document("b", "PLAN: Fever.", "Other", {"patient": "p2"}),
        ]
    )
    return library


def change_after(monkeypatch, library, method, change):
    """Make a change after the first call of a method of the engine; return a list that is not empty afterwards."""
    original, changes = getattr(library.index, method), []

    def call_and_change(*arguments):
        result = original(*arguments)
        if not changes:
            changes.append(change)
            with Library(library.path, encoder="none", discourse=WordDiscourse()) as other:
                change(other)
        return result

    monkeypatch.setattr(library.index, method, call_and_change)
    return changes


def replace(other):
    other.add(Document("a", AFTER, "New", {"patient": "p2"}), replace=True)


def remove(other):
    other.remove("a")


@pytest.mark.parametrize("change", [replace, remove])
@pytest.mark.parametrize("group", [None, "document", "patient"])
@pytest.mark.parametrize(("mode", "method"), [("lexical", "lexical"), ("cdv", "dense"), ("cdv", "span_vectors")])
def test_a_document_that_changes_after_the_ranking_is_left_out(library, monkeypatch, change, group, mode, method):
    changes = change_after(monkeypatch, library, method, change)
    hits = library.search(Query(entity="fever", aspect="plan"), mode=mode, group=group, neighbours=1)
    assert changes
    assert [hit.document for hit in hits] == ["b"]


@pytest.mark.parametrize("change", [replace, remove])
def test_a_hit_and_its_neighbours_have_the_same_state(library, monkeypatch, change):
    changes = change_after(monkeypatch, library, "passages", change)
    assert [hit.document for hit in library.search("fever", mode="lexical", neighbours=2)] == ["b"]
    assert changes


@pytest.mark.parametrize("change", [replace, remove])
@pytest.mark.parametrize("method", ["lexical", "passages"])
def test_a_part_never_shows_a_document_that_has_left_it(library, monkeypatch, change, method):
    part = library.within({"patient": "p1"})
    changes = change_after(monkeypatch, library, method, change)
    for hit in part.search("fever soup", mode="lexical", neighbours=2):
        assert (hit.text, hit.title) == ("PLAN: Fever and rest.", "Old")
        assert [near.text for near in hit.neighbours] == ["DIET: Tea.", "SLEEP: Long."]
    assert changes
    assert part.search("fever soup", mode="lexical").hits == ()


def test_the_next_hit_takes_the_place_of_a_removed_one(library, monkeypatch):
    change_after(monkeypatch, library, "lexical", remove)
    for group in (None, "document"):
        assert [hit.document for hit in library.search("fever", 1, mode="lexical", group=group)] == ["b"]
