"""Hostile ids, texts, filters and headers are rejected, or returned as text."""

import json
import urllib.parse

import pytest
from served import DOCUMENTS, problem

from capr.serve.middleware import POLICY
from capr.serve.routes.page import FOLDER

IDS = [
    "../../etc/passwd",
    "..",
    "....//....//etc/passwd",
    "/etc/passwd",
    "..\\..\\windows\\win.ini",
    "a1\x00",
    "%2e%2e",
    "a1/../b1",
    "library.db",
    "' OR 1=1 --",
    "a1'; DROP TABLE document; --",
    "<script>alert(1)</script>",
    "\u202e",
    "💥" * 50,
    "x" * 1000,
    "*",
    "NULL",
]


@pytest.mark.parametrize("id", IDS)
def test_ids(client, id):
    quoted = urllib.parse.quote(id, safe="")
    for method, address in (("GET", "{}"), ("GET", "{}/passages/0"), ("POST", "{}/scores"), ("DELETE", "{}")):
        body = {"query": "x"} if method == "POST" else None
        reply = client.request(method, f"/api/documents/{address.format(quoted)}", json=body)
        problem(reply, 404)
        assert "root:" not in reply.text
    problem(client.post("/api/ask", json={"question": "x?", "document": id}), 404 if len(id) <= 1000 else 422)
    assert client.get("/api/stats").json()["documents"] == 6


@pytest.mark.parametrize(
    "path",
    [
        "/page/../application.py",
        "/page/%2e%2e/application.py",
        "/page/..%2fapplication.py",
        "/page//etc/passwd",
        "/page/",
        "/page/index.html/",
        "/page/%00",
        "/page/index.html%00.js",
        "/tokens.json",
        "/api/../tokens.json",
    ],
)
def test_paths_do_not_leave_the_folder_of_the_page(client, path):
    reply = client.get(path)
    assert reply.status_code == 404, reply.text[:100]
    assert "import" not in reply.text


@pytest.mark.parametrize(
    "filters",
    [
        {"patient": "' OR '1'='1"},
        {"patient": '"; DROP TABLE document; --'},
        {"x' OR 1=1 --": "y"},
        {"patient": "A' UNION SELECT * FROM meta"},
        {"#day": "2024-03-05"},
        {"#document": "a1"},
        {"": "x"},
        {"patient": ""},
        {"patient": "@/etc/passwd"},
        {"document": "@/etc/passwd"},
        {"patient": "*" * 500},
        {"date": "'; --"},
        {"patient": []},
        {"patient": ["\x00"]},
        {"\u0000": "x"},
    ],
)
def test_filters(client, filters):
    reply = client.post("/api/search", json={"query": "lasix", "filters": filters})
    assert reply.status_code in (200, 422)
    assert "root:" not in reply.text
    if reply.status_code == 200 and filters != {"patient": "*" * 500}:
        assert reply.json()["hits"] == []
    facets = client.post("/api/facets", json={"filters": filters})
    assert facets.status_code in (200, 422)
    assert client.get("/api/stats").json()["documents"] == 6


def test_a_query_cannot_read_a_file(client):
    for query in ("patient:@/etc/passwd lasix", "document:@/etc/hosts", 'type:"@/etc/passwd" gout'):
        assert "root:" not in json.dumps(client.search(query))
        assert "localhost" not in json.dumps(client.search(query))


@pytest.mark.parametrize(
    "query",
    ['"', '""', "+", "-", "a:b:c", "AND OR NOT", "(", "\\", "*", "~", "^2", "\x00", "'" * 100, ":" * 100, "(((" * 300],
)
def test_queries_without_meaning(client, query):
    assert client.post("/api/search", json={"query": query}).status_code in (200, 422)


def test_scripts_are_returned_as_text(client):
    (article,) = [document for document in DOCUMENTS if document.id == "x"]
    reply = client.get("/api/documents/x")
    assert reply.json()["text"] == article.text
    assert reply.json()["title"] == article.title
    assert reply.headers["content-type"] == "application/json"
    hit = client.hits("gout article")[0]
    assert hit["text"] == article.text
    reply_to_script = client.get("/api/documents/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert reply_to_script.headers["content-type"] == "application/problem+json"


def test_headers_keep_browsers_safe(client):
    for path in ("/", "/page/main.js", "/api/me", "/api/none", "/api/documents/x", "/health"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("no-cache" if path in ("/", "/page/main.js") else "no-store")
        assert "server" not in headers
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


def test_the_page(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.text == (FOLDER / "index.html").read_text("utf-8")
    script = client.get("/page/main.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["cache-control"] == "no-cache"
    again = client.get("/page/main.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    style = next(path.name for path in FOLDER.glob("*.css"))
    assert client.get(f"/page/{style}").headers["content-type"] == "text/css; charset=utf-8"


def test_messages_contain_no_folder_of_the_server(client, folder):
    replies = [
        client.post("/api/search", json={"query": "x", "mode": "dense"}),
        client.post("/api/search", json={"query": "x", "mode": "cdv"}),
        client.post("/api/search", json={"query": "lasix"}),
        client.get("/api/stats"),
        client.get("/api/me"),
    ]
    for reply in replies:
        assert str(folder) not in reply.text
        assert str(folder.parent) not in reply.text


@pytest.mark.parametrize("headers", [{"content-type": "text/html"}, {"content-type": "application/xml"}, {}])
def test_bodies_of_other_content_types(client, headers):
    reply = client.post("/api/search", content=b"<query>lasix</query>", headers=headers)
    problem(reply, 422)
