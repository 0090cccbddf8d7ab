"""Access: tokens, roles, and routes that need a token unless they are listed as open."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from served import Client, problem
from starlette.routing import Route

from capr.cli import app
from capr.documents import CaprError, UnavailableError
from capr.serve.access import is_loopback
from capr.serve.launcher import check, serve
from capr.serve.middleware import OPEN
from capr.serve.settings import Settings
from capr.serve.tokens import TokenStore


def routes(router, prefix=""):
    """Yield every path, method and route of an application, in nested routers as well."""
    for route in router.routes:
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        if isinstance(route, Route) or hasattr(route, "methods"):
            path = route.path if route.path.startswith(prefix) else prefix + route.path
            yield from ((path, method, route) for method in (route.methods or ()) if method != "HEAD")
        elif inner is not None:
            yield from routes(inner, prefix + getattr(route, "prefix", "") or getattr(inner, "prefix", ""))


def addresses(client):
    """Return every path and method of the OpenAPI document, with a value for each parameter."""
    paths = client.server_app.openapi()["paths"]
    addresses = {(path, method.upper()) for path, methods in paths.items() for method in methods}
    addresses |= {
        ("/api/openapi.json", "GET"),
        ("/docs", "GET"),
        ("/metrics", "GET"),
        ("/api/nothing", "GET"),
        ("/nothing", "POST"),
    }
    return sorted((path.replace("{id}", "a1").replace("{index}", "0"), method) for path, method in addresses)


@pytest.fixture
def described(client):
    client.server_app = client.app._app
    return client


def test_every_route_is_closed_once_a_token_exists(described, tokens):
    tokens("admin")
    closed = [(path, method) for path, method in addresses(described) if path not in OPEN]
    assert len(closed) >= 24
    for path, method in closed:
        error = problem(described.request(method, path, json={}), 401)
        assert error["detail"] == "the request has no token"
        assert error["fix"] == "send yours as Authorization: Bearer TOKEN, or ask the administrator for one"
    for path in OPEN:
        assert described.get(path).status_code == 200


def test_the_openapi_document_names_every_route(described):
    """The test above covers only the addresses that the OpenAPI document names."""
    known = {path for path, _ in addresses(described)} | {"/", "/page/{name:path}", "/docs/{name}"}
    paths = set()
    for path, _, _ in routes(described.server_app.router):
        paths.add(path.replace("{id:path}", "a1").replace("{id}", "a1").replace("{index}", "0"))
    suffixes = {path.removeprefix("/api") for path in known} | known
    assert len(paths) >= 24
    assert paths <= suffixes, paths - suffixes


ROLES = {
    "reader": [("GET", "/api/me"), ("POST", "/api/search"), ("GET", "/api/documents"), ("POST", "/api/feedback")],
    "writer": [
        ("POST", "/api/documents"),
        ("DELETE", "/api/documents/zzz"),
        ("GET", "/api/jobs/1"),
        ("GET", "/api/jobs/1/events"),
    ],
    "admin": [("GET", "/api/feedback/export")],
}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_includes_those_before_it(client, tokens, role):
    holder = client.with_token(tokens(role))
    order = list(ROLES)
    for needed, requests in ROLES.items():
        for method, path in requests:
            reply = holder.request(method, path, json={})
            if order.index(role) < order.index(needed):
                assert needed in problem(reply, 403)["detail"]
            else:
                assert reply.status_code not in (401, 403), (path, reply.text)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic abc", "Bearer capr_", "bearer capr_x y", "Bearer ü"]
)
def test_a_missing_or_wrong_token_is_rejected(client, tokens, header):
    tokens()
    reply = client.get("/api/me", headers={"Authorization": header.encode("latin-1")})
    problem(reply, 401)
    assert reply.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_or_expired_token_is_rejected(client, tokens, state):
    token = tokens(name="anna")
    holder = client.with_token(token)
    assert holder.get("/api/me").json()["name"] == "anna"
    TokenStore(state.tokens).revoke("anna")
    problem(holder.get("/api/me"), 401)
    short = tokens(name="short", days=1e-9)
    problem(client.with_token(short).get("/api/me"), 401)
    problem(client.get("/api/me"), 401)  # revoking the last token does not open the library


def test_tokens_are_stored_as_hashes(tokens, state):
    token = tokens(name="anna", patient=["A"])
    text = state.tokens.read_text()
    assert token not in text
    assert token.removeprefix("capr_") not in text
    assert state.tokens.stat().st_mode & 0o077 == 0
    (record,) = TokenStore(state.tokens).all()
    assert (record.name, record.role, record.restrictions) == ("anna", "reader", {"patient": ["A"]})
    assert TokenStore(state.tokens).find(token) == record
    assert TokenStore(state.tokens).find(token[:-1]) is None


def test_concurrent_tokens_are_all_stored(state):
    with ThreadPoolExecutor(8) as threads:
        secrets = list(threads.map(lambda i: TokenStore(state.tokens).create(f"t{i}")[0], range(24)))
    assert len({TokenStore(state.tokens).find(token).name for token in secrets}) == 24


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "reader"), "needs the name"),
        (("n", "king"), "no role"),
        (("n", "writer", {"patient": ["A"]}), "cannot be restricted"),
        (("n", "reader", {"aspect": ["plan"]}), "select whole documents"),
        (("n", "reader", {"entity": ["gout"]}), "select whole documents"),
        (("n", "reader", {"without": ["negated"]}), "select whole documents"),
        (("n", "reader", {"Without": ["negated"]}), "select whole documents"),
        (("n", "reader", {" Section!": ["plan"]}), "select whole documents"),
        (("n", "reader", {"date": ["x..y"]}), "range of dates"),
        (("n", "reader", {}, -1), "expire"),
    ],
)
def test_an_invalid_token_is_not_created(state, arguments, message):
    with pytest.raises(CaprError, match=message):
        TokenStore(state.tokens).create(*arguments)
    assert not state.tokens.exists()


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        '{"tokens": [{}]}',
        '{"tokens": 3}',
        '{"tokens": [{"id": "1", "name": "n", "role": "king", "hash": ""}]}',
        '{"tokens": [{"id": "1", "name": "n", "role": "reader", "hash": "", "restrictions": {"patient!": []}}]}',
        '{"tokens": [{"id": "1", "name": "n", "role": "reader", "hash": "", "restrictions": {"Without": ["family"]}}]}',
    ],
)
def test_a_damaged_token_file_rejects_every_caller(client, state, tokens, damage):
    token = tokens("admin")
    state.tokens.write_text(damage)
    for caller in (client, client.with_token(token)):
        problem(caller.get("/api/me"), 503)
    with pytest.raises(UnavailableError):
        TokenStore(state.tokens).all()


# --- without tokens ---


@pytest.mark.parametrize("address", ["192.168.1.7", "::ffff:10.0.0.1", "unknown", "2001:db8::1"])
def test_without_tokens_the_server_answers_only_this_machine(client, address):
    assert "no token yet" in problem(Client(client.app, "", address).get("/api/me"), 403)["detail"]


def test_requests_of_a_proxy_are_not_local(client):
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        problem(client.get("/api/me", headers={header: "127.0.0.1"}), 403)


def test_other_host_names_are_not_local(client):
    problem(client.get("/api/me", headers={"Host": "evil.example"}), 403)
    for host in ("localhost:8000", "127.0.0.1:1", "[::1]:80", "[::1]"):
        assert client.get("/api/me", headers={"Host": host}).status_code == 200


def test_requests_of_pages_of_other_sites_are_rejected(client, tokens):
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        problem(client.post("/api/search", json={"query": "gout"}, headers=headers), 403)
        problem(client.with_token(tokens()).get("/api/me", headers=headers), 403)
    (client.app.server.tokens.file).unlink()
    assert client.get("/api/me", headers={"Origin": "http://127.0.0.1"}).status_code == 200


def test_other_sites_may_not_read_replies(client):
    reply = client.options(
        "/api/search", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert reply.status_code >= 400
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_server_that_requires_a_token_rejects_everybody_before_the_first_token(serve, tokens):
    client = serve(require_token=True)
    client.server_app = client.app._app
    closed = [(path, method) for path, method in addresses(client) if path not in OPEN]
    assert len(closed) >= 24
    for path, method in closed:
        error = problem(client.request(method, path, json={}), 401)
        assert "has no token yet" in error["detail"]
        assert "capr token create" in error["fix"]
    problem(client.with_token("capr_made-up").get("/api/me"), 401)
    problem(Client(client.app, "", "192.168.1.7").get("/api/me"), 401)
    for path in OPEN:
        assert client.get(path).status_code == 200
    holder = client.with_token(tokens())  # works at once
    assert holder.get("/api/me").json()["open"] is False
    assert "the request has no token" in problem(client.get("/api/me"), 401)["detail"]
    client.server.tokens.file.unlink()
    problem(holder.get("/api/me"), 401)


def test_a_public_host_needs_a_token(folder, tokens):
    with pytest.raises(CaprError, match=r"could read the library.*capr token create"):
        check(Settings(library=str(folder), host="0.0.0.0"))
    with pytest.raises(CaprError, match="no token"):
        serve(Settings(library=str(folder), host="10.0.0.1"), print)
    check(Settings(library=str(folder), host="::1"))
    check(
        Settings(library=str(folder), host="0.0.0.0", require_token=True)
    )  # it rejects everybody until a token exists
    tokens()
    check(Settings(library=str(folder), host="0.0.0.0"))


def test_loopback_addresses():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "::ffff:127.0.0.1")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "::", "10.0.0.1", "example.org", "::ffff:10.0.0.1")))


# --- the commands ---


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs a command in this process and returns its output."""

    def command(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["capr", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            app()
        assert raised.value.code == code
        return capsys.readouterr()

    return command


def test_token_commands(folder, tmp_path, run, state):
    (tmp_path / "cohort.txt").write_text("A\nC\n")
    output = run(
        "token", "create", folder, "--name", "ward 3", "--filter", f"patient=@{tmp_path / 'cohort.txt'}", "--days", "2"
    )
    token = output.out.strip()
    assert "ward 3, reader, restricted to patient=A, patient=C, until" in output.err
    record = TokenStore(state.tokens).find(token)
    assert record.restrictions == {"patient": ["A", "C"]}
    listing = run("token", "list", folder, "--json").out
    assert '"state": "valid"' in listing
    assert "hash" not in listing
    assert "ward 3" in run("token", "list", folder).out
    assert f"Revoked token {record.id} (" in run("token", "revoke", folder, record.id).out
    assert TokenStore(state.tokens).find(token) is None
    for name in (record.id, "ward 3"):
        assert run("token", "revoke", folder, name).out == f"Token {record.id} (ward 3) was already revoked\n"
    assert "capr token list" in run("token", "revoke", folder, "nobody", code=2).err
    assert "no role" in run("token", "create", folder, "--name", "x", "--role", "king", code=2).err
    assert "there is no library" in run("serve", tmp_path / "none", code=2).err


def test_a_new_token_tells_how_many_documents_it_sees(folder, run, state):
    assert (
        "restricted to patient=A; sees 2 documents"
        in run("token", "create", folder, "--name", "x", "--filter", "patient=A").err
    )
    output = run("token", "create", folder, "--name", "x", "--filter", "foo=bar")
    assert output.out.startswith("capr_")
    assert "restricted to foo=bar; sees 0 documents" in output.err
    assert "Notice: no document has foo=bar; the library has no field 'foo'" in output.err
    assert "Notice: the token sees no document" in output.err
    output = run("token", "create", folder, "--name", "x", "--filter", "foo=bar", "--json")
    assert json.loads(output.out)["documents"] == 0
    assert "Notice: the token sees no document" in output.err
    assert "sees" not in run("token", "create", folder, "--name", "x").err
    count = len(TokenStore(state.tokens).all())
    error = run("token", "create", folder, "--name", "x", "--filter", "patent=A", code=2).err
    assert "no document has the field 'patent'. Did you mean patient? Fix: write patient" in error
    assert "is not a date" in run("token", "create", folder, "--name", "x", "--filter", "date=03/24", code=2).err
    assert len(TokenStore(state.tokens).all()) == count


def test_on_a_terminal_a_label_precedes_the_token(folder, run, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output = run("token", "create", folder, "--name", "x")
    assert output.err.startswith("Token (shown only now): ")
    assert re.fullmatch(r"capr_\S+\n", output.out)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert "Token" not in run("token", "create", folder, "--name", "x").err


def test_a_stored_restriction_to_an_impossible_period_locks_nobody_out(state, tokens):
    tokens()
    text = state.tokens.read_text().replace('"restrictions": {}', '"restrictions": {"date": ["2024-06..2024-01"]}')
    state.tokens.write_text(text)
    (token,) = TokenStore(state.tokens).all()
    assert token.filters


def test_the_list_of_tokens_breaks_no_value(folder, run, tokens, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    tokens(name="ward 3", days=90, patient=["A", "C"], type=["Discharge summary"])
    tokens("writer", name="nightly import")
    header, first, restricted, second = run("token", "list", folder).out.splitlines()
    assert header.split() == ["id", "role", "created", "expires", "state", "name"]
    assert re.fullmatch(r"\w{8}  reader  \d{4}-\d\d-\d\d  \d{4}-\d\d-\d\d  valid  ward 3", first)
    assert restricted == " " * 10 + "restricted to patient=A, patient=C, type=Discharge summary"
    assert re.fullmatch(r"\w{8}  writer  \d{4}-\d\d-\d\d  never       valid  nightly import", second)
    assert max(map(len, (header, first, second))) <= 80
