"""Concurrent requests return the same results as sequential ones, even while documents change."""

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
    """Return a library of the samples with the vectors of a tiny encoder, and its models."""
    folder = tmp_path_factory.mktemp("threads")
    encoder, ranker = encoder_folder(folder / "encoder", pooling="mean"), ranker_folder(folder / "ranker")
    with Library(folder / "library", encoder=encoder, ranker=ranker) as library:
        library.add(samples.documents())
    return folder


def open_library(folder):
    return Library(folder / "library", ranker=folder / "ranker")


def as_text(results):
    return json.dumps(results.as_json(), sort_keys=True)


def search(library, body):
    body = dict(body)
    query = Query(body.pop("query", ""), body.pop("entity", ""), body.pop("aspect", ""))
    filters = {**body.pop("filters", {}), "without": body.pop("without", [])}
    return as_text(library.search(query, body.pop("k", 10), filters=filters, **body))


def test_concurrent_searches_return_the_same_results(folder):
    with open_library(folder) as library:
        parts = [library, library.within({"patient": ["p01", "p02", "p03"]}), library.within({"source": "articles"})]
        work = [(part, body) for part in range(len(parts)) for body in QUERIES] * 4
        alone = {(part, json.dumps(body)): search(parts[part], body) for part, body in work}
    with open_library(folder) as library, ThreadPoolExecutor(8) as threads:  # nothing is loaded yet
        filters = [None, {"patient": ["p01", "p02", "p03"]}, {"source": "articles"}]
        together = threads.map(lambda item: search(library.within(filters[item[0]]), item[1]), work)
        for (part, body), results in zip(work, together, strict=True):
            assert results == alone[part, json.dumps(body)]


def test_concurrent_requests_get_the_same_replies(folder):
    settings = Settings(library=str(folder / "library"), rate=0, max_waiting=1000)
    with Client(application(settings, open_library(folder))) as client:

        def ask(body):
            results = client.search(**body)
            results.pop("took")
            return results

        alone = [ask(body) for body in QUERIES]
        with ThreadPoolExecutor(16) as threads:
            for number, results in enumerate(threads.map(ask, QUERIES * 10)):
                assert results == alone[number % len(QUERIES)]


def test_searches_are_consistent_while_documents_change(tmp_path):
    with Library(tmp_path / "library", encoder="none", ranker="none") as library:
        library.add(Document("stays", "PLAN: Gout is treated.", "", {"patient": "A"}))
        stop, failures = threading.Event(), []

        def search():
            while not stop.is_set():
                try:
                    part = library.within({"patient": "A"})
                    ids = [hit.document for hit in part.search("gout")]
                    counts = part.facets().documents, part.stats().documents, len(part.patients())
                    if ids != ["stays"] or counts != (1, 1, 1) or part.document("stays").id != "stays":
                        failures.append((ids, counts))
                except Exception as error:
                    failures.append(error)

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(15):
            library.add([Document(f"{number}-{i}", "Gout comes and goes.", "", {"patient": "B"}) for i in range(5)])
            library.remove(filters={"patient": "B"})
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
