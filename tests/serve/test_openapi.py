"""The OpenAPI document, the API browser, and requests with several problems."""

import re

import pytest
from served import problem

from capr.serve.server_models import ProblemReply

LIMITS = {"max_k": 7, "max_query_length": 30}


def schema_of(document, part):
    """Return a part of the document with its references resolved."""
    while "$ref" in part:
        part = document["components"]["schemas"][part["$ref"].rpartition("/")[2]]
    return part


def json_replies(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, reply in operation["responses"].items():
                for media, content in reply.get("content", {}).items():
                    if media.endswith("json"):
                        yield f"{method} {path} {status}", schema_of(document, content["schema"])


def test_every_json_reply_has_a_schema_with_fields(client):
    replies = dict(json_replies(client.get("/api/openapi.json").json()))
    assert len(replies) >= 100
    assert [name for name, schema in replies.items() if not schema.get("properties")] == []
    assert replies["post /api/search 200"]["properties"].keys() >= {"hits", "notices", "mode", "took"}


def test_every_field_of_a_reply_has_a_type(client):
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    fields = {
        f"{name}.{field}": part
        for name, schema in schemas.items()
        for field, part in schema.get("properties", {}).items()
    }
    vague = [
        name for name, part in fields.items() if not part.keys() & {"type", "$ref", "anyOf", "enum", "const", "allOf"}
    ]
    assert len(fields) >= 100
    assert vague == []


@pytest.mark.parametrize("settings", [{}, LIMITS], ids=["default", "changed"])
def test_the_limits_of_the_schema_are_those_of_the_server(serve, settings):
    client = serve(**settings)
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    max_k = schemas["SearchBody"]["properties"]["k"]["maximum"]
    max_query_length = schemas["AskBody"]["properties"]["question"]["maxLength"]
    assert (max_k, max_query_length) == ((7, 30) if settings else (100, 1000))
    assert client.post("/api/search", json={"query": "x", "k": max_k}).status_code == 200
    problem(client.post("/api/search", json={"query": "x", "k": max_k + 1}), 422)
    assert client.post("/api/ask", json={"question": "x" * max_query_length}).status_code == 200
    problem(client.post("/api/ask", json={"question": "x" * (max_query_length + 1)}), 422)


def test_two_servers_in_one_process_state_their_own_limits(serve):
    for k in (5, 9):
        schemas = serve(max_k=k).get("/api/openapi.json").json()["components"]["schemas"]
        assert schemas["SearchBody"]["properties"]["k"]["maximum"] == k


def test_all_problems_of_query_parameters_are_reported_together(client):
    reply = client.get("/api/documents?limit=0&offset=-1&date=x..y&ward=7&floor=2")
    fields = {error["field"] for error in problem(reply, 422)["errors"]}
    assert fields == {"query.limit", "query.offset", "query.date", "query.ward", "query.floor"}


def test_all_problems_of_a_body_and_its_address_are_reported_together(client):
    reply = client.post("/api/search?k=3", json={"k": 0, "query": "x" * 2001, "filters": {"date": "x..y"}})
    fields = {error["field"] for error in problem(reply, 422)["errors"]}
    assert fields == {"query.k", "body.k", "body.query", "body.filters"}


def post(client, body, path="/api/search"):
    return problem(client.post(path, content=body, headers={"Content-Type": "application/json"}), 422)


def test_an_unknown_field_comes_first_with_the_nearest_known_one(client):
    error = post(client, '{"quary": "x"}')
    assert [field["field"] for field in error["errors"]] == ["body.quary", "body"]
    assert error["errors"][0]["problem"] == "unknown field; did you mean query?"
    assert error["detail"].startswith(
        "the request is not valid: body.quary: unknown field; did you mean query?; body: "
    )
    assert error["fix"].startswith("write query instead of quary; send query alone, or ")
    assert "Fix:" not in str(error)
    assert "a text" not in error["detail"]
    error = post(client, '{"query": "x", "zzz": 1}')
    assert "body.zzz: unknown field; known here: query, entity, aspect, k, filters, " in error["detail"]
    assert error["fix"] == "leave out zzz"
    error = post(client, '{"documents": [{"id": "n", "txt": "x", "text": "x"}], "replaces": true}', "/api/documents")
    assert {field["field"]: field["problem"] for field in error["errors"]} == {
        "body.documents.0.txt": "unknown field; did you mean text?",
        "body.replaces": "unknown field; did you mean replace?",
    }
    error = problem(client.get("/api/documents?limt=3"), 422)
    assert error["errors"] == [{"field": "query.limt", "problem": "unknown parameter; did you mean limit?"}]
    assert error["fix"] == "write limit instead of limt"


def test_the_fix_of_a_filter_is_not_part_of_the_detail(client):
    error = post(client, '{"query": "x", "filters": {"date": "x..y"}}')
    assert "Fix:" not in str(error)
    assert "Value error" not in str(error)
    assert "2023" in error["fix"]


def test_a_body_that_is_not_json_is_called_so(client):
    error = post(client, '{"query" "x"}')
    assert error["detail"].startswith("the request is not valid: body: not valid JSON, character 10: ")
    assert error["fix"] == "write valid JSON"
    error = post(client, '{"documents" []}', "/api/documents")
    assert error["detail"].startswith("the request is not valid: body: not valid JSON: ")
    assert error["detail"].endswith(" at line 1 column 14")
    assert error["fix"] == "write valid JSON"


def test_an_unknown_address_leads_to_the_api_browser(client):
    error = problem(client.get("/api/serch"), 404)
    assert (error["detail"], error["fix"]) == (
        "the server has no such address",
        "look the address up in the API browser at /docs",
    )
    assert "POST api/search" in problem(client.get("/api/documents/none"), 404)["fix"]


def test_an_unknown_parameter_does_not_run_the_request(client):
    problem(client.delete("/api/documents/a1?dry=1"), 422)
    assert client.get("/api/documents/a1").status_code == 200


def test_old_names_still_work_and_are_marked_as_deprecated(client):
    body = {"query": "lasix dose", "document": "a2", "begin": 0, "end": 10, "answers": True}
    client.post("/api/feedback", json=body)
    judgements = client.post("/api/feedback/own", json={"query": "lasix dose"}).json()["judgements"]
    assert len(judgements) == 1
    assert client.post("/api/feedback/given", json={"query": "lasix dose"}).json()["given"] == judgements
    for path, prefix in (("/api/patients", "a"), ("/api/suggest", "gou"), ("/api/aspects", "fam")):
        new = client.get(path, params={"prefix": prefix})
        assert client.get(path, params={"typed": prefix}).json() == new.json()
        assert new.json() != client.get(path, params={"prefix": "zzz"}).json()
    ask = {"question": "40 mg?", "threshold": 0}
    assert (
        client.post("/api/ask", json={**ask, "top": 1}).json()["answers"]
        == client.post("/api/ask", json={**ask, "k": 1}).json()["answers"]
    )
    answers = client.post("/api/ask", json=ask).json()
    assert (answers["found"], answers["paragraphs"]) == (answers["answered"], answers["passages"])
    assert answers["answers"][0]["paragraph"] == answers["answers"][0]["passage"]
    search = client.post("/api/saved", json={"name": "Lasix", "address": "q=lasix"}).json()
    assert search["made"] == search["created"]
    document = client.get("/api/openapi.json").json()
    for schema, old in (
        ("AskReply", "found"),
        ("AskReply", "paragraphs"),
        ("Answer", "paragraph"),
        ("SavedSearch", "made"),
        ("JobReply", "made"),
    ):
        assert document["components"]["schemas"][schema]["properties"][old]["deprecated"]
    assert document["paths"]["/api/feedback/given"]["post"]["deprecated"]
    assert document["components"]["schemas"]["AskBody"]["properties"]["top"]["deprecated"]
    for path in ("/api/patients", "/api/suggest", "/api/aspects"):
        parameters = {parameter["name"]: parameter for parameter in document["paths"][path]["get"]["parameters"]}
        assert parameters["typed"]["deprecated"]
        assert not parameters["prefix"].get("deprecated")


def test_the_api_browser_needs_no_other_site(client):
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert "docs/swagger-ui-bundle.js" in addresses
    for address in addresses:
        assert "//" not in address
        assert client.get(f"/{address}").status_code == 200
    problem(client.get("/docs/swagger-ui.exe"), 404)
    problem(client.get("/docs/..%2Fapplication.py"), 404)


def test_the_check_of_replies_rejects_other_fields():
    """The client of these tests checks every reply with these models, so they must not accept everything."""
    reply = {"type": "x", "title": "x", "status": 404, "detail": "x", "fix": "x", "instance": "x"}
    ProblemReply.model_validate(reply)
    with pytest.raises(ValueError, match="more"):
        ProblemReply.model_validate({**reply, "more": 1})
