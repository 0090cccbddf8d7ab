"""Documents, a client, and what every problem document has: for the tests of the server."""

import re
import time

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
    """A client with a token, or none."""

    def __init__(self, app, token="", address="127.0.0.1", **options):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        super().__init__(
            app, base_url=ADDRESS, headers=headers, client=(address, 50000), raise_server_exceptions=False, **options
        )
        self.app = app

    def search(self, query="", **body):
        found = self.post("/api/search", json={**({"query": query} if query else {}), **body})
        assert found.status_code == 200, found.text
        return found.json()

    def hits(self, query="", **body):
        return self.search(query, **body)["hits"]

    def documents_of(self, query="", **body):
        return [hit["document"] for hit in self.hits(query, **body)]

    def with_token(self, token, address="127.0.0.1"):
        return Client(self.app, token, address)


def problem(response, status):
    """The problem document of a reply, which has everything that one needs."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["status"] == status
    assert found["detail"]
    assert found["fix"]
    assert found["title"]
    assert not re.search(r"Traceback|File \"", response.text)
    return found


def wait(client, job):
    for _ in range(500):
        found = client.get(f"/api/jobs/{job}").json()
        if found["state"] not in ("waiting", "running"):
            return found
        time.sleep(0.02)
    raise AssertionError(found)
