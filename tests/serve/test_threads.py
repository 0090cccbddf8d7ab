"""Many requests at once give what they give one after the other, while documents come and go."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from capr import samples
from capr.annotate import Query
from capr.documents import Document
from capr.search import Library
from capr.serve.application import application
from capr.serve.settings import Settings

sys.path.append(str(Path(__file__).parents[1] / "index"))

from reference import encoder_folder, ranker_folder
from served import Client

QUERIES = [
    {"query": "Why was spironolactone stopped?"},
    {"query": "chest pain -fever", "k": 20},
    {"query": "gout", "filters": {"patient": "p0*"}, "group": "patient"},
    {"entity": "heart attack", "aspect": "family history"},
    {"entity": "asthma", "without": ["negated"], "neighbours": 1},
    {"query": "vancomycin dose", "mode": "dense"},
    {"query": "kidney injury", "mode": "lexical", "filters": {"type": "Discharge summary", "date": "2024.."}},
    {"query": '"heart failure" medications', "rerank": False},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The samples, found by words and by vectors of a tiny encoder."""
    folder = tmp_path_factory.mktemp("threads")
    encoder, ranker = encoder_folder(folder / "encoder", pooling="mean"), ranker_folder(folder / "ranker")
    with Library(folder / "library", encoder=encoder, ranker=ranker) as library:
        library.add(samples.documents())
    return folder


def opened(folder):
    return Library(folder / "library", ranker=folder / "ranker")


def as_text(results):
    return json.dumps(results.as_json(), sort_keys=True)


def asked(library, body):
    body = dict(body)
    query = Query(body.pop("query", ""), body.pop("entity", ""), body.pop("aspect", ""))
    filters = {**body.pop("filters", {}), "without": body.pop("without", [])}
    return as_text(library.search(query, body.pop("k", 10), filters=filters, **body))


def test_searches_at_once_find_what_they_find_alone(folder):
    with opened(folder) as library:
        parts = [library, library.within({"patient": ["p01", "p02", "p03"]}), library.within({"source": "articles"})]
        work = [(place, body) for place in range(len(parts)) for body in QUERIES] * 4
        alone = {(place, json.dumps(body)): asked(parts[place], body) for place, body in work}
    with opened(folder) as library, ThreadPoolExecutor(8) as threads:  # nothing is loaded yet
        filters = [None, {"patient": ["p01", "p02", "p03"]}, {"source": "articles"}]
        together = threads.map(lambda one: asked(library.within(filters[one[0]]), one[1]), work)
        for (place, body), found in zip(work, together, strict=True):
            assert found == alone[place, json.dumps(body)]


def test_requests_at_once_are_answered_alike(folder):
    settings = Settings(library=str(folder / "library"), rate=0, waiting=1000)
    with Client(application(settings, opened(folder))) as client:

        def ask(body):
            found = client.search(**body)
            found.pop("took")
            return found

        alone = [ask(body) for body in QUERIES]
        with ThreadPoolExecutor(16) as threads:
            for number, found in enumerate(threads.map(ask, QUERIES * 10)):
                assert found == alone[number % len(QUERIES)]


def test_documents_come_and_go_meanwhile(tmp_path):
    with Library(tmp_path / "library", encoder="none", ranker="none") as library:
        library.add(Document("stays", "PLAN: Gout is treated.", "", {"patient": "A"}))
        stop, wrong = threading.Event(), []

        def search():
            while not stop.is_set():
                try:
                    part = library.within({"patient": "A"})
                    found = [hit.document for hit in part.search("gout")]
                    counted = part.facets().documents, part.stats().documents, len(part.patients())
                    if found != ["stays"] or counted != (1, 1, 1) or part.document("stays").id != "stays":
                        wrong.append((found, counted))
                except Exception as error:
                    wrong.append(error)

        searching = [threading.Thread(target=search) for _ in range(4)]
        for thread in searching:
            thread.start()
        for number in range(15):
            library.add([Document(f"{number}-{i}", "Gout comes and goes.", "", {"patient": "B"}) for i in range(5)])
            library.remove(filters={"patient": "B"})
        stop.set()
        for thread in searching:
            thread.join()
        assert wrong == []
