"""Who may ask for what: tokens, roles, and a server that is closed unless it is said to be open."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from served import Client, problem
from starlette.routing import Route

from capr.cli import app
from capr.documents import CaprError, UnavailableError
from capr.serve.access import is_loopback
from capr.serve.gate import OPEN
from capr.serve.run import check, serve
from capr.serve.settings import Settings
from capr.serve.tokens import Tokens


def routes(router, prefix=""):
    """Every path and method that an application knows, however deep."""
    for route in router.routes:
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        if isinstance(route, Route) or hasattr(route, "methods"):
            path = route.path if route.path.startswith(prefix) else prefix + route.path
            yield from ((path, method, route) for method in (route.methods or ()) if method != "HEAD")
        elif inner is not None:
            yield from routes(inner, prefix + getattr(route, "prefix", "") or getattr(inner, "prefix", ""))


def addresses(client):
    """Every address of the server, with something in the place of each parameter."""
    described = client.server_app.openapi()["paths"]
    found = {(path, method.upper()) for path, methods in described.items() for method in methods}
    found |= {("/api/openapi.json", "GET"), ("/metrics", "GET"), ("/api/nothing", "GET"), ("/nothing", "POST")}
    return sorted((path.replace("{id}", "a1").replace("{index}", "0"), method) for path, method in found)


@pytest.fixture
def described(client):
    client.server_app = client.app._app
    return client


def test_every_route_is_closed_once_a_token_exists(described, tokens):
    tokens("admin")
    closed = [(path, method) for path, method in addresses(described) if path not in OPEN]
    assert len(closed) >= 24
    for path, method in closed:
        told = problem(described.request(method, path, json={}), 401)
        assert "capr token create" in told["fix"]
    for path in OPEN:
        assert described.get(path).status_code == 200


def test_the_description_names_every_route(described):
    """What is not described could be forgotten above."""
    known = {path for path, _ in addresses(described)} | {"/", "/page/{name:path}"}
    found = set()
    for path, _, _ in routes(described.server_app.router):
        found.add(path.replace("{id:path}", "a1").replace("{id}", "a1").replace("{index}", "0"))
    suffixes = {path.removeprefix("/api") for path in known} | known
    assert len(found) >= 24
    assert found <= suffixes, found - suffixes


ROLES = {
    "reader": [("GET", "/api/me"), ("POST", "/api/search"), ("GET", "/api/documents"), ("POST", "/api/feedback")],
    "writer": [("POST", "/api/documents"), ("DELETE", "/api/documents/zzz"), ("GET", "/api/jobs/1"), ("GET", "/api/jobs/1/events")],
    "admin": [("GET", "/api/feedback/export")],
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_what_those_before_it_may(client, tokens, role):
    holder = client.with_token(tokens(role))
    order = list(ROLES)
    for needed, asked in ROLES.items():
        for method, path in asked:
            reply = holder.request(method, path, json={})
            if order.index(role) < order.index(needed):
                assert needed in problem(reply, 403)["detail"]
            else:
                assert reply.status_code not in (401, 403), (path, reply.text)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic abc", "Bearer capr_", "bearer capr_x y", "Bearer ü"]
)
def test_no_token_or_a_wrong_one(client, tokens, header):
    tokens()
    reply = client.get("/api/me", headers={"Authorization": header.encode("latin-1")})
    problem(reply, 401)
    assert reply.headers["www-authenticate"].startswith("Bearer")


def test_a_token_that_is_revoked_or_expired(client, tokens, folder):
    token = tokens(name="anna")
    holder = client.with_token(token)
    assert holder.get("/api/me").json()["name"] == "anna"
    Tokens(folder).revoke("anna")
    problem(holder.get("/api/me"), 401)
    short = tokens(name="short", days=1e-9)
    problem(client.with_token(short).get("/api/me"), 401)
    problem(client.get("/api/me"), 401)  # revoking the last one does not open the door


def test_tokens_are_kept_hashed(tokens, folder):
    token = tokens(name="anna", patient=["A"])
    text = (folder / "tokens.json").read_text()
    assert token not in text
    assert token.removeprefix("capr_") not in text
    assert (folder / "tokens.json").stat().st_mode & 0o077 == 0
    (known,) = Tokens(folder).all()
    assert (known.name, known.role, known.restrictions) == ("anna", "reader", {"patient": ["A"]})
    assert Tokens(folder).find(token) == known
    assert Tokens(folder).find(token[:-1]) is None


def test_tokens_made_at_the_same_time_are_all_kept(folder):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda i: Tokens(folder).create(f"t{i}")[0], range(24)))
    assert len({Tokens(folder).find(token).name for token in made}) == 24


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("", "reader"), "needs the name"),
        (("n", "king"), "no role"),
        (("n", "writer", {"patient": ["A"]}), "cannot be restricted"),
        (("n", "reader", {"aspect": ["plan"]}), "whole documents"),
        (("n", "reader", {"entity": ["gout"]}), "whole documents"),
        (("n", "reader", {"without": ["negated"]}), "whole documents"),
        (("n", "reader", {"Without": ["negated"]}), "whole documents"),
        (("n", "reader", {" Section!": ["plan"]}), "whole documents"),
        (("n", "reader", {"date": ["x..y"]}), "range of dates"),
        (("n", "reader", {}, -1), "expire"),
    ],
)
def test_a_token_that_cannot_be(folder, arguments, told):
    with pytest.raises(CaprError, match=told):
        Tokens(folder).create(*arguments)
    assert not (folder / "tokens.json").exists()


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
def test_damaged_tokens_let_nobody_in(client, folder, tokens, damage):
    token = tokens("admin")
    (folder / "tokens.json").write_text(damage)
    for one in (client, client.with_token(token)):
        problem(one.get("/api/me"), 503)
    with pytest.raises(UnavailableError):
        Tokens(folder).all()


# --- without tokens ---


@pytest.mark.parametrize("address", ["192.168.1.7", "::ffff:10.0.0.1", "unknown", "2001:db8::1"])
def test_without_a_token_only_this_machine_is_served(client, address):
    assert "no token yet" in problem(Client(client.app, "", address).get("/api/me"), 403)["detail"]


def test_a_proxy_makes_nobody_local(client):
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        problem(client.get("/api/me", headers={header: "127.0.0.1"}), 403)


def test_a_name_of_elsewhere_is_not_this_machine(client):
    problem(client.get("/api/me", headers={"Host": "evil.example"}), 403)
    for host in ("localhost:8000", "127.0.0.1:1", "[::1]:80", "[::1]"):
        assert client.get("/api/me", headers={"Host": host}).status_code == 200


def test_a_page_of_another_site_is_not_answered(client, tokens):
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        problem(client.post("/api/search", json={"query": "gout"}, headers=headers), 403)
        problem(client.with_token(tokens()).get("/api/me", headers=headers), 403)
    (client.app.server.tokens.file).unlink()
    assert client.get("/api/me", headers={"Origin": "http://127.0.0.1"}).status_code == 200


def test_no_other_site_may_read_replies(client):
    reply = client.options(
        "/api/search", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert reply.status_code >= 400
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_server_that_requires_a_token_opens_to_nobody_while_there_is_none(serve, tokens):
    client = serve(require_token=True)
    client.server_app = client.app._app
    closed = [(path, method) for path, method in addresses(client) if path not in OPEN]
    assert len(closed) >= 24
    for path, method in closed:
        told = problem(client.request(method, path, json={}), 401)
        assert "has no token yet" in told["detail"]
        assert "capr token create" in told["fix"]
    problem(client.with_token("capr_made-up").get("/api/me"), 401)
    problem(Client(client.app, "", "192.168.1.7").get("/api/me"), 401)
    for path in OPEN:
        assert client.get(path).status_code == 200
    holder = client.with_token(tokens())  # counts at once
    assert holder.get("/api/me").json()["open"] is False
    assert "there is no token" in problem(client.get("/api/me"), 401)["detail"]
    client.server.tokens.file.unlink()
    problem(holder.get("/api/me"), 401)


def test_a_host_that_others_reach_needs_a_token(folder, tokens):
    with pytest.raises(CaprError, match=r"could read the library.*capr token create"):
        check(Settings(library=str(folder), host="0.0.0.0"))
    with pytest.raises(CaprError, match="no token"):
        serve(Settings(library=str(folder), host="10.0.0.1"), print)
    check(Settings(library=str(folder), host="::1"))
    check(Settings(library=str(folder), host="0.0.0.0", require_token=True))  # nobody is answered until there is one
    tokens()
    check(Settings(library=str(folder), host="0.0.0.0"))


def test_what_is_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "::ffff:127.0.0.1")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "::", "10.0.0.1", "example.org", "::ffff:10.0.0.1")))


# --- the commands ---


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs a command in this process: what it prints, and what it says."""

    def command(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["capr", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app()
        assert ended.value.code == code
        return capsys.readouterr()

    return command


def test_the_commands(folder, tmp_path, run):
    (tmp_path / "cohort.txt").write_text("A\nC\n")
    made = run(
        "token", "create", folder, "--name", "ward 3", "--filter", f"patient=@{tmp_path / 'cohort.txt'}", "--days", "2"
    )
    token = made.out.strip()
    assert "ward 3, reader, restricted to patient=A, patient=C, until" in made.err
    found = Tokens(folder).find(token)
    assert found.restrictions == {"patient": ["A", "C"]}
    listed = run("token", "list", folder, "--json").out
    assert '"state": "valid"' in listed
    assert "hash" not in listed
    assert "ward 3" in run("token", "list", folder).out
    assert "is revoked" in run("token", "revoke", folder, found.id).out
    assert Tokens(folder).find(token) is None
    assert "capr token list" in run("token", "revoke", folder, "nobody", code=2).err
    assert "no role" in run("token", "create", folder, "--name", "x", "--role", "king", code=2).err
    assert "there is no library" in run("serve", tmp_path / "none", code=2).err
