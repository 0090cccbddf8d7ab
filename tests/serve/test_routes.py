"""Each route returns what the library returns."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from served import DOCUMENTS, problem, wait

from capr.annotate import Query
from capr.search import Library
from capr.serve import routes
from capr.serve.metrics import Metrics

TEXTS = {document.id: document.text for document in DOCUMENTS}


def test_a_search_returns_the_results_of_the_library(client, folder):
    with Library(folder, encoder="none", ranker="none") as library:
        for query, body in [
            (Query("lasix daily"), {"query": "lasix daily"}),
            (Query(entity="asthma", aspect="family history"), {"entity": "asthma", "aspect": "family history"}),
        ]:
            expected = json.loads(json.dumps(library.search(query, 3).as_json()))
            results = client.search(**body, k=3)
            assert results.pop("took") >= 0
            assert results == expected
            assert results["hits"]


def test_offsets_of_hits_are_exact(client):
    for hit in client.hits("asthma gout lasix plan", neighbours=1):
        text = TEXTS[hit["document"]]
        assert hit["text"] == text[hit["begin"] : hit["end"]]
        assert 0 <= hit["index"] < hit["passages"]
        for part in (*hit["sentences"], *hit["mentions"], *hit.get("neighbours", ())):
            assert part["text"] == text[part["begin"] : part["end"]]
        for mention in hit["mentions"]:
            for cue in mention["cues"].values():
                assert cue["begin"] is None or cue["text"].lower() == text[cue["begin"] : cue["end"]].lower()


def test_the_cue_of_a_negated_mention(client):
    (hit,) = client.hits("gout", filters={"patient": "A"})
    (gout,) = [mention for mention in hit["mentions"] if mention["text"] == "gout"]
    assert gout["negated"]
    assert gout["cues"]["negated"]["text"] == "No"
    assert client.documents_of("gout", filters={"patient": "A"}, without=["negated"]) == []


def test_options_of_a_search(client):
    assert set(client.documents_of("lasix", filters={"patient": ["A", "B"]})) == {"a2", "b1"}
    assert set(client.documents_of("lasix", filters={"patient!": "A"})) == {"b1", "c1"}
    assert client.documents_of("lasix", filters={"date": "2024-01-01..2024-12-31"}) == ["b1"]
    assert len(client.hits("lasix", k=1)) == 1
    groups = client.hits("plan lasix", group="patient")
    assert len({hit["group"] for hit in groups}) == len(groups) == 3
    assert "stages" not in client.hits("lasix", explain=False)[0]
    assert client.search("lasix", mode="lexical")["mode"] == "lexical"


def test_asking(client):
    answers = client.post("/api/ask", json={"question": "40 mg?", "filters": {"patient": "A"}}).json()
    assert answers["answered"]
    (best, *_) = answers["answers"]
    assert (best["document"], best["text"]) == ("a2", TEXTS["a2"][best["begin"] : best["end"]])
    other = client.post("/api/ask", json={"question": "40 mg?", "document": "b1"}).json()
    assert not other["answered"]


def test_asking_without_a_reader(folder, serve):
    error = problem(serve(reader="none").post("/api/ask", json={"question": "dose?"}), 503)
    assert "reader" in error["detail"]


def test_the_list_of_documents(client):
    reply = client.get("/api/documents?limit=2&offset=1").json()
    assert [row["id"] for row in reply["documents"]] == ["a2", "b1"]
    assert reply["total"] == 6
    assert "text" not in reply["documents"][0]
    assert client.get("/api/documents?patient=A&type=Note").json()["documents"][0]["id"] == "a2"
    assert client.get("/api/documents?patient=A&patient=C").json()["total"] == 3


def test_facets_count_the_listed_documents_of_an_aspect(client):
    for aspect in ("plan", "Family History", "allergies"):
        reply = client.get("/api/documents", params={"aspect": aspect}).json()
        facets = client.post("/api/facets", json={"filters": {"aspect": aspect}}).json()
        assert reply["total"] == len(reply["documents"]) == facets["documents"]
    reply = client.get("/api/documents?aspect=plan&patient=A").json()
    assert [row["id"] for row in reply["documents"]] == ["a1", "a2"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/documents?section=plan", "section"),
        ("/api/documents?patient=A&ward=Seven", "ward"),
        ("/api/patients?type=Note", "type"),
        ("/api/documents/a1?patient=B", "patient"),
        ("/api/stats?patient=A", "patient"),
    ],
)
def test_an_unknown_filter_is_rejected(client, path, name):
    error = problem(client.get(path), 422)
    assert [field["field"] for field in error["errors"]] == [f"query.{name}"]
    assert "unknown parameter" in error["detail"]


def test_a_document(client):
    reply = client.get("/api/documents/a1").json()
    text = reply["text"]
    assert text == TEXTS["a1"]
    assert [text[s["begin"] : s["end"]].split(":")[0] for s in reply["sections"]] == ["FAMILY HISTORY", "PLAN"]
    assert [passage["index"] for passage in reply["passages"]] == [0, 1]
    assert [text[begin:end] for begin, end in reply["sentences"]][-1].startswith("PLAN: Start aspirin")
    asthma = next(mention for mention in reply["mentions"] if mention["text"] == "asthma")
    assert asthma["family"]
    assert asthma["cues"]["family"]
    for mention in reply["mentions"]:
        assert mention["text"] == text[mention["begin"] : mention["end"]]


@pytest.mark.parametrize("address", ["b%2F2%20%3F%23%25", "b/2%20%3F%23%25"])
def test_an_id_may_have_any_character(client, address):
    assert client.get(f"/api/documents/{address}").json()["id"] == "b/2 ?#%"
    assert client.get(f"/api/documents/{address}/passages/0").json()["text"] == "PLAN: Weigh daily."
    scores = client.post(f"/api/documents/{address}/scores", json={"query": "weigh"}).json()
    assert scores["document"] == "b/2 ?#%"


def test_a_passage(client):
    reply = client.get("/api/documents/a1/passages/1").json()
    assert (reply["index"], reply["passages"], reply["headings"], reply["aspect"]) == (1, 2, ["PLAN"], "plan")
    assert reply["text"] == TEXTS["a1"][reply["begin"] : reply["end"]]
    assert "aspirin" in [mention["text"] for mention in reply["mentions"]]
    problem(client.get("/api/documents/a1/passages/2"), 404)
    problem(client.get("/api/documents/a1/passages/-1"), 422)


def test_scores_of_sentences(client):
    reply = client.post("/api/documents/a1/scores", json={"entity": "asthma", "aspect": "family history"}).json()
    assert reply["by"] == "words"
    best = max(reply["sentences"], key=lambda sentence: sentence["both"])
    assert "asthma" in TEXTS["a1"][best["begin"] : best["end"]]
    assert [heading["heading"] for heading in reply["headings"]] == ["FAMILY HISTORY", "PLAN"]


def test_facets(client):
    reply = client.post("/api/facets", json={"filters": {"patient": "A"}}).json()
    assert reply["documents"] == 2
    assert reply["type"] == [{"value": "Letter", "count": 1}, {"value": "Note", "count": 1}]
    assert {row["value"]: row["count"] for row in reply["patient"]} == {"A": 2, "B": 2, "C": 1}
    assert reply["dates"] == [{"month": "2023-01", "count": 1}, {"month": "2024-03", "count": 1}]
    assert reply["more"] == {"patient": 0, "type": 0, "source": 0, "aspect": 0}
    assert client.post("/api/facets", json={}).json()["undated"] == 2


def test_patients(client):
    reply = client.get("/api/patients").json()
    assert reply["total"] == 3
    assert reply["patients"][0] == {"patient": "A", "documents": 2, "first": "2023-01-01", "last": "2024-03-05"}
    assert client.get("/api/patients?prefix=b").json()["patients"][0]["patient"] == "B"
    assert client.get("/api/patients?offset=1&limit=1").json()["patients"][0]["patient"] == "B"


def test_completion(client):
    (reply,) = client.get("/api/suggest", params={"prefix": "hart att"}).json()["suggestions"]
    assert reply["name"] == "heart attack"
    assert reply["concept"]["code"] == "MESH:D009203"
    assert client.get("/api/suggest").json() == {"suggestions": []}
    (aspect,) = client.get("/api/aspects?prefix=fam").json()["aspects"]
    assert (aspect["name"], aspect["documents"]) == ("family history", 1)
    assert client.get("/api/aspects").json()["aspects"][0]["name"] == "plan"


def test_stats_and_me(client):
    reply = client.get("/api/stats").json()
    assert (reply["documents"], reply["patients"]) == (6, 3)
    me = client.get("/api/me").json()
    assert (me["name"], me["role"], me["open"], me["restrictions"]) == ("local", "admin", True, {})
    assert me["features"] == {"ask": True, "scores": "words", "deidentified": False}


def test_saved_searches(client):
    reply = client.post("/api/saved", json={"name": "Lasix", "address": "query=lasix"})
    assert reply.status_code == 201
    assert client.get("/api/saved").json()["saved"] == [reply.json()]
    assert client.delete(f"/api/saved/{reply.json()['id']}").status_code == 204
    assert client.get("/api/saved").json() == {"saved": []}
    problem(client.delete("/api/saved/none"), 404)


def test_exports(client):
    reply = client.post("/api/export", json={"query": "lasix", "format": "csv"})
    assert reply.headers["content-disposition"] == 'attachment; filename="capr-hits.csv"'
    rows = list(csv.DictReader(io.StringIO(reply.content.decode("utf-8-sig"))))
    assert [row["document"] for row in rows] == client.documents_of("lasix")
    row = next(row for row in rows if row["document"] == "b1")
    assert row["citation"] == f"Secret visit of B, Letter, B, 2024-03-09, b1 [{row['begin']}, {row['end']})"
    assert row["text"] == TEXTS["b1"][int(row["begin"]) : int(row["end"])]
    reply = client.post("/api/export", json={"query": "lasix", "format": "json", "group": "patient"}).json()
    assert all(hit["citation"] for hit in reply["hits"])


def test_cells_of_an_export_are_not_formulas(client, folder, serve):
    body = {"documents": [{"id": "=1+1", "text": "=HYPERLINK(1) cachexia"}]}
    job = client.post("/api/documents", json=body).json()["job"]
    assert wait(client, job)["state"] == "done", wait(client, job)
    text = client.post("/api/export", json={"query": "cachexia"}).content.decode("utf-8-sig")
    assert "'=HYPERLINK" in text
    assert "'=1+1" in text


def test_health_readiness_and_metrics(client):
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").json() == {"status": "ready"}
    client.search("lasix")
    client.get("/api/documents/none")
    text = client.get("/metrics").text
    assert 'capr_requests_total{method="POST",route="/api/search",status="200"} 1' in text
    assert 'capr_requests_total{method="GET",route="/api/documents/{id:path}",status="404"} 1' in text
    assert 'capr_request_seconds_bucket{method="POST",route="/api/search",le="+Inf"} 1' in text
    assert "capr_resident_bytes" in text
    assert "none" not in text


def test_a_counter_of_millions_is_exact(tmp_path):
    metrics = Metrics(None, {"capr_resident_bytes": lambda: 1_234_567_890.0})
    metrics.count("capr_refused_total", 12_345_678)
    metrics.count("capr_refused_total")
    metrics.request("/health", "GET", 200, 1_234_567.0625)
    text = metrics.text()
    assert "capr_refused_total 12345679\n" in text
    assert "capr_resident_bytes 1234567890\n" in text
    assert 'capr_request_seconds_sum{method="GET",route="/health"} 1234567.0625\n' in text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/documents", "GET, POST"),
        ("POST", "/api/documents/a1", "GET, DELETE"),
        ("GET", "/api/search", "POST"),
        ("DELETE", "/health", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
        ("HEAD", "/api/stats", "GET"),
        ("POST", "/api/saved/x", "DELETE"),
        ("FOO", "/api/feedback", "POST"),
    ],
)
def test_a_rejected_method_lists_the_allowed_ones(client, method, path, allowed):
    reply = client.request(method, path)
    assert reply.status_code == 405
    assert reply.headers["allow"] == allowed


def test_metrics_work_even_if_they_cannot_be_written_for_other_workers(tmp_path, caplog):
    metrics = Metrics(tmp_path / "gone", {})
    metrics.count("capr_wrong_tokens_total")
    for _ in range(3):
        assert "capr_wrong_tokens_total 1" in metrics.text()
    assert caplog.text.count("cannot be written for the others") == 1


def test_every_route_is_in_the_documentation(client):
    page = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text("utf-8")
    for path in client.get("/api/openapi.json").json()["paths"]:
        assert path in page, f"docs/reference/http.md does not name {path}"


def test_the_openapi_document_has_examples(client):
    document = client.get("/api/openapi.json").json()
    assert document["info"]["title"] == "capr"
    operations = [(p, m, o) for p, methods in document["paths"].items() for m, o in methods.items()]
    assert len(operations) >= 22
    for path, method, operation in operations:
        good = [reply for status, reply in operation["responses"].items() if status.startswith("2")]
        assert operation["summary"]
        assert good, (path, method)
        for reply in good:
            assert all("example" in content for content in reply.get("content", {}).values()), (path, method)
        if path.startswith("/api"):
            assert {"401", "403", "422", "429", "503"} <= operation["responses"].keys()
            assert operation["security"]
    bodies = document["components"]["schemas"]
    assert all(
        bodies[name]["examples"] for name in ("SearchBody", "AskBody", "FacetsBody", "SavedSearchBody", "FeedbackBody")
    )


def test_every_reference_of_the_openapi_document_exists(client):
    document = client.get("/api/openapi.json").json()
    paths = list(references(document))
    assert "#/components/schemas/SearchBody" in paths
    for reference in paths:
        target = document
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]
        assert target
    body = document["paths"]["/api/documents"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["documents"]["items"]["required"] == ["id", "text"]


def references(part):
    for name, value in part.items() if isinstance(part, dict) else enumerate(part):
        if name == "$ref":
            yield value
        elif isinstance(value, dict | list):
            yield from references(value)


def test_each_problem_has_an_example_of_its_own(client):
    examples = {}
    for methods in client.get("/api/openapi.json").json()["paths"].values():
        for operation in methods.values():
            for status, reply in operation["responses"].items():
                if "application/problem+json" in reply.get("content", {}):
                    examples[int(status)] = reply["content"]["application/problem+json"]["example"]
    assert {status: example["status"] for status, example in examples.items()} == {
        status: status for status in examples
    }
    assert {status: example["title"] for status, example in examples.items()} == {
        401: "Unauthorized",
        403: "Forbidden",
        404: "Not Found",
        408: "Request Timeout",
        409: "Conflict",
        413: "Content Too Large",
        422: "Unprocessable Content",
        429: "Too Many Requests",
        503: "Service Unavailable",
    }
    assert (
        len({example["type"] for example in examples.values()})
        == len({example["detail"] for example in examples.values()})
        == 9
    )


def test_the_examples_of_exports_have_the_fields_of_real_files(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    files = paths["/api/export"]["post"]["responses"]["200"]["content"]
    export = client.post("/api/export", json={"query": "lasix"}).content.decode("utf-8-sig")
    assert files["text/csv"]["example"].split("\r\n")[0] == export.split("\r\n")[0]
    export = client.post("/api/export", json={"query": "lasix", "format": "json"}).json()
    assert files["application/json"]["example"].keys() == export.keys()
    client.post("/api/feedback", json={"query": "lasix", "document": "a2", "begin": 0, "end": 24, "answers": True})
    export = gzip.decompress(client.get("/api/feedback/export").content).decode().splitlines()
    examples = paths["/api/feedback/export"]["get"]["responses"]["200"]["content"]["application/gzip"]["example"]
    for line, example in zip(export, examples.splitlines(), strict=True):
        ((kind, record),), ((example_kind, example_record),) = json.loads(line).items(), json.loads(example).items()
        assert (kind, record.keys()) == (example_kind, example_record.keys())


def test_every_file_of_routes_is_registered():
    modules = {path.stem for path in Path(routes.__file__).parent.glob("*.py")} - {"__init__"}
    registered = [name for name, _ in routes.ROUTES]
    assert sorted(registered) == sorted(modules)


def test_only_addresses_under_api_have_problems_in_the_openapi_document(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {path for path in paths if not path.startswith("/api/")} == {"/health", "/ready", "/metrics"}
    assert "401" in paths["/api/search"]["post"]["responses"]
    assert "401" not in paths["/health"]["get"]["responses"]
