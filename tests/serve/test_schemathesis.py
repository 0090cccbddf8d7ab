"""Valid and invalid requests from the OpenAPI document: none causes an error of the server.

CAPR_REQUESTS is the total number of requests; `make test-api` sends some thousands.
"""

import os
from collections import Counter
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

REQUESTS = int(os.environ.get("CAPR_REQUESTS", "240"))
THOROUGH = "CAPR_REQUESTS" in os.environ  # different requests in each run


@pytest.fixture
def target(serve):
    """Return a client of a server without limits, which counts the statuses of replies."""
    client = serve(rate=0, body_seconds=5.0)
    client.statuses = Counter()
    return client


def test_no_request_is_an_error_of_the_server(target):
    document = target.get("/api/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    operations = [operation.ok() for operation in schema.get_all_operations()]
    assert len(operations) >= 24
    per_mode = max(3, REQUESTS // len(operations) + 1)  # some operations allow only one

    for operation in operations:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            @settings(
                max_examples=per_mode,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                derandomize=not THOROUGH,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def send_case(case):
                send(target, case)

            try:
                send_case()
            except Exception as error:
                if "Unsatisfiable" not in type(error).__name__:
                    raise
    total = sum(target.statuses.values())
    print(f"\n{total} requests: {dict(target.statuses)}")
    assert total >= REQUESTS
    assert not [status for status in target.statuses if status >= 500 and status != 503]
    assert target.statuses[503] == 0


def send(client, case):
    """Send a request of schemathesis, and check that the server handles it."""
    kwargs = case.as_transport_kwargs(base_url="http://127.0.0.1")
    body = {name: kwargs[name] for name in ("json", "data", "files") if kwargs.get(name) is not None}
    if isinstance(body.get("data"), bytes | str):
        body["content"] = body.pop("data")
    if isinstance(body.get("files"), list):  # httpx accepts only bytes and texts in a form
        body["files"] = [
            (name, tuple(part if isinstance(part, bytes | str | None) else str(part) for part in file))
            for name, file in body["files"]
        ]
    try:
        reply = client.request(
            kwargs["method"],
            kwargs["url"],
            params=kwargs.get("params"),
            headers=safe_headers(kwargs.get("headers") or {}),
            **body,
        )
    except (UnicodeError, ValueError, TypeError):  # no client can send this request
        return
    client.statuses[reply.status_code] += 1
    assert reply.status_code < 500, (kwargs["method"], kwargs["url"], body, reply.text)
    if reply.status_code >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["fix"]


def safe_headers(headers):
    """Return headers without those that the client sets itself."""
    return {name: value for name, value in headers.items() if name.lower() not in ("host", "origin", "authorization")}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.text(st.characters(codec="utf-8", exclude_characters="?#"), max_size=30),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"]),
    body=st.binary(max_size=50),
)
def test_any_path_and_method(target, path, method, body):
    for begin in ("/", "/api/", "/page/", "/api/documents/"):
        reply = target.request(method, begin + quote(path, safe="/"), content=body)
        assert reply.status_code < 500, (method, begin + path, reply.text)
