"""A new kind of results: an operation that is written only here works like the library's own operations."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from capr.annotate import Vocabulary
from capr.cli.results import show
from capr.documents import CaprError, Document
from capr.index.embedded.engine import EmbeddedIndex
from capr.search import Answers, Library, Listing, Resources, Results, adding, contents, removing
from capr.search.finding import find
from capr.search.models import Models
from capr.search.passages import SearchOptions

NOTES = [
    Document("a", "PLAN: Start aspirin. Fever again.", metadata={"patient": "p1"}),
    Document("b", "PLAN: No fever today.\n\nDIET: Tea.", metadata={"patient": "p2"}),
    Document("c", "PLAN: Rest.", metadata={"patient": "p1"}),
]


# A new kind needs only the item, the results and the operation.


@dataclass(frozen=True, slots=True)
class Case:
    """A patient whose documents have passages that answer a query."""

    patient: str
    documents: tuple[str, ...]

    def as_json(self):
        return {"patient": self.patient, "documents": list(self.documents)}


@dataclass(frozen=True, slots=True)
class Cases(Listing[Case]):
    name: ClassVar[str] = "cases"
    cases: tuple[Case, ...]
    query: str
    notices: tuple[str, ...] = ()

    def about(self):
        return {"query": self.query}


def cases(resources, query, filters=None):
    results = find(resources, query, SearchOptions(mode="lexical"), filters)
    documents = {}
    for hit in results:
        documents.setdefault(hit.metadata["patient"], []).append(hit.document)
    case_tuple = tuple(Case(patient, tuple(ids)) for patient, ids in sorted(documents.items()))
    return Cases(case_tuple, query, results.notices)


class OwnLibrary(Library):
    def cases(self, query, *, filters=None):
        """Return the results of the operation: the only line that a library needs."""
        return cases(self.resources, query, filters)


@pytest.fixture
def library(path):
    with OwnLibrary(path, encoder="none", ranker="none") as filled:
        filled.add(NOTES)
        yield filled


def test_a_new_job_works_with_a_library(library):
    results = library.cases("fever")
    assert list(results) == [Case("p1", ("a",)), Case("p2", ("b",))]
    assert (len(results), results[1].patient) == (2, "p2")
    assert list(library.cases("fever", filters={"patient": "p2"})) == [Case("p2", ("b",))]


def test_a_new_job_sees_only_its_part_of_the_library(library):
    assert list(library.within({"patient": "p2"}).cases("fever")) == [Case("p2", ("b",))]
    assert list(library.cases("fever")) == [Case("p1", ("a",)), Case("p2", ("b",))]


def test_jobs_need_no_library(path):
    """Call operations with an index, its writer and models."""
    resources = Resources(path, EmbeddedIndex(path, create=True), Models(path, "none", "none"), Vocabulary.load())
    index, models, annotator = resources.index, resources.models, resources.annotator()
    committed = []
    with index.writing() as writer:
        added = adding.add(NOTES, index, writer, models, annotator, on_commit=committed.extend)
    assert (added.added, committed) == (3, ["a", "b", "c"])
    assert list(cases(resources, "aspirin")) == [Case("p1", ("a",))]
    assert contents.document(index, "a") == NOTES[0]
    assert removing.remove(resources, filters={"patient": "p1"}) == 2
    assert len(cases(resources, "aspirin")) == 0
    index.close()


def test_any_listing_can_be_printed(library, capsys):
    results = library.cases("zebra", filters={"patient": "p9"})
    assert results.notices == ("no document has patient=p9; there are p1, p2",)
    show(results, True, lambda listing, console: pytest.fail("in words"))
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"query": "zebra", "notices": list(results.notices), "cases": []}
    assert printed.err == ""
    show(results, False, lambda listing, console: console.print(f"{len(listing)} cases of {listing.query}"))
    printed = capsys.readouterr()
    assert printed.out == "0 cases of zebra\n"
    assert printed.err == f"Notice: {results.notices[0]}\n"


@pytest.mark.parametrize(
    ("results", "record"),
    [
        (
            Results((), "lexical", {"fever": ("pyrexia",)}, ("a note",)),
            {"mode": "lexical", "expanded": {"fever": ["pyrexia"]}, "notices": ["a note"], "hits": []},
        ),
        (
            Answers("why?", (), 0.5, "fake", 1, 2, 0.1234, ("a note",)),
            {
                "question": "why?",
                "answered": False,
                "found": False,  # the name of "answered" before 0.2
                "threshold": 0.5,
                "reader": "fake",
                "documents": 1,
                "passages": 2,
                "paragraphs": 2,  # the name of "passages" before 0.2
                "took": 0.123,
                "notices": ["a note"],
                "answers": [],
            },
        ),
        (Cases((Case("p1", ("a",)),), "x"), {"query": "x", "notices": [], "cases": [Case("p1", ("a",)).as_json()]}),
    ],
)
def test_json_has_the_notices_before_the_items(results, record):
    assert list(results.as_json().items()) == list(record.items())
    assert list(results) == list(results.items)


# --- the resources ---


def test_the_parser_is_created_once(library):
    parser = library.resources.parser
    assert library.resources.parser is parser
    part = library.within({"patient": "p1"})
    assert part.resources.parser is part.resources.parser
    assert part.resources.parser is not parser  # it knows the fields of other documents


def test_resources_follow_the_models_and_the_index(library):
    before = library.resources
    library.use(encoder="none")
    assert library.resources.models is library.models
    assert library.resources is not before
    before = library.resources
    library.close()
    assert library.resources.index is not before.index
    assert len(library.cases("fever")) == 2


def test_filters_without_a_query_cannot_be_about_its_entity(library):
    assert library.resources.filters("without=negated").without
    with pytest.raises(CaprError, match="there is no query here"):
        library.resources.document_filters("without=negated")
