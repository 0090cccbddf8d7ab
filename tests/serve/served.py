"""Documents and clients of the server tests."""

import re
import time

from conformance import check_reply
from starlette.testclient import TestClient

from capr.documents import Document

ADDRESS = "http://127.0.0.1"
SECRET = "Sarcoidosis was diagnosed in Bergen"
DOCUMENTS = [
    Document(
        "a1",
        "FAMILY HISTORY: Father had asthma. No gout.\n\nPLAN: Start aspirin 81 mg for the heart attack.",
        "Visit of A",
        {"patient": "A", "date": "2024-03-05", "type": "Letter", "source": "east", "author": "Wilma Stratmore, MD"},
    ),
    Document(
        "a2", "PLAN: Lasix 40 mg daily.", "", {"patient": "A", "date": "2023-01-01", "type": "Note", "source": "west"}
    ),
    Document(
        "b1",
        f"HISTORY: {SECRET} in 2011.\n\nPLAN: Continue prednisone 5 mg. Lasix 20 mg.",
        "Secret visit of B",
        {"patient": "B", "date": "2024-03-09", "type": "Letter", "source": "west", "ward": "Seven"},
    ),
    Document("b/2 ?#%", "PLAN: Weigh daily.", "", {"patient": "B", "date": "2022", "type": "Note", "source": "west"}),
    Document("c1", "Lasix 10 mg for edema.", "", {"patient": "C", "source": "east"}),
    Document("x", "<script>alert(1)</script> gout article", "<img src=x onerror=alert(2)>", {"type": "Article"}),
]


class Client(TestClient):
    """A client with an optional token. It checks every reply against its model."""

    def __init__(self, app, token="", address="127.0.0.1", **options):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        super().__init__(
            app, base_url=ADDRESS, headers=headers, client=(address, 50000), raise_server_exceptions=False, **options
        )
        self.app = app

    def request(self, method, url, **options):
        reply = super().request(method, url, **options)
        check_reply(method, reply.request.url.raw_path.decode().partition("?")[0], reply)
        return reply

    def search(self, query="", **body):
        reply = self.post("/api/search", json={**({"query": query} if query else {}), **body})
        assert reply.status_code == 200, reply.text
        return reply.json()

    def hits(self, query="", **body):
        return self.search(query, **body)["hits"]

    def documents_of(self, query="", **body):
        return [hit["document"] for hit in self.hits(query, **body)]

    def with_token(self, token, address="127.0.0.1"):
        return Client(self.app, token, address)


def problem(response, status):
    """Return the problem document of a reply, after checking its fields."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["detail"]
    assert document["fix"]
    assert document["title"]
    assert not re.search(r"Traceback|File \"", response.text)
    return document


def wait(client, job):
    """Wait until a job ends, and return it."""
    for _ in range(500):
        progress = client.get(f"/api/jobs/{job}").json()
        if progress["state"] not in ("waiting", "running"):
            return progress
        time.sleep(0.02)
    raise AssertionError(progress)
