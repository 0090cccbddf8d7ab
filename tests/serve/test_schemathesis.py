"""Requests made from the OpenAPI document, sensible and not: nothing is an error of the server.

CAPR_REQUESTS says how many there are in all; `make test-api` makes some thousands.
"""

import os
from collections import Counter
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

REQUESTS = int(os.environ.get("CAPR_REQUESTS", "240"))
THOROUGH = "CAPR_REQUESTS" in os.environ  # others each time


@pytest.fixture
def asked(serve):
    """A server that takes requests from everybody at any rate, and how many it has had."""
    client = serve(rate=0, body_seconds=5.0)
    client.statuses = Counter()
    return client


def test_no_request_is_an_error_of_the_server(asked):
    document = asked.get("/api/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 24
    each = max(3, REQUESTS // len(operations) + 1)  # of each kind; some have no more than one

    for operation in operations:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            @settings(
                max_examples=each, deadline=None, database=None, phases=[Phase.generate],
                derandomize=not THOROUGH,
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case):
                send(asked, case)

            try:
                ask()
            except Exception as error:
                if "Unsatisfiable" not in type(error).__name__:
                    raise
    total = sum(asked.statuses.values())
    print(f"\n{total} requests: {dict(asked.statuses)}")
    assert total >= REQUESTS
    assert not [status for status in asked.statuses if status >= 500 and status != 503]
    assert asked.statuses[503] == 0


def send(client, case):
    """Sends what schemathesis has made, whatever it is."""
    kwargs = case.as_transport_kwargs(base_url="http://127.0.0.1")
    body = {name: kwargs[name] for name in ("json", "data", "files") if kwargs.get(name) is not None}
    if isinstance(body.get("data"), bytes | str):
        body["content"] = body.pop("data")
    if isinstance(body.get("files"), list):  # values of a form are texts
        body["files"] = [
            (name, tuple(one if isinstance(one, bytes | str | None) else str(one) for one in file))
            for name, file in body["files"]
        ]
    try:
        reply = client.request(
            kwargs["method"], kwargs["url"], params=kwargs.get("params"), headers=clean(kwargs.get("headers") or {}),
            **body,
        )  # fmt: skip
    except (UnicodeError, ValueError, TypeError):  # no client could send it
        return
    client.statuses[reply.status_code] += 1
    assert reply.status_code < 500, (kwargs["method"], kwargs["url"], body, reply.text)
    if reply.status_code >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["fix"]


def clean(headers):
    """Headers that can be sent; Host and Origin stay those of the client."""
    return {name: value for name, value in headers.items() if name.lower() not in ("host", "origin", "authorization")}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.text(st.characters(codec="utf-8", exclude_characters="?#"), max_size=30),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"]),
    body=st.binary(max_size=50),
)
def test_any_path_and_method(asked, path, method, body):
    for begin in ("/", "/api/", "/page/", "/api/documents/"):
        reply = asked.request(method, begin + quote(path, safe="/"), content=body)
        assert reply.status_code < 500, (method, begin + path, reply.text)
