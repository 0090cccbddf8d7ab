"""Access: who is asking, and may they?"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.requests import HTTPConnection
from starlette.types import Scope

from capr.index import Filters
from capr.serve.limits import WrongTokens
from capr.serve.problems import ProblemError
from capr.serve.tokens import ROLES, Restrictions, Tokens

NAMES = ("localhost", "127.0.0.1", "[::1]")  # by which this machine calls itself
# A proxy stands before the server, so that everybody seems to ask from this machine.
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
MAKE = "make a token (capr token create LIBRARY --name NAME), and send it as Authorization: Bearer TOKEN"


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        id: of the token; empty if there is none.
        name: of its holder.
        role: what it may do.
        filters: what every document has to pass that it may see.
        restrictions: the same as it was written.
        open: whether the library has no token at all, so that whoever sits at this machine may do everything.
    """

    id: str
    name: str
    role: str
    filters: Filters = field(default_factory=Filters)
    restrictions: Restrictions = field(default_factory=dict)
    open: bool = False

    def may(self, role: str) -> bool:
        """Whether it may do what needs a role."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Caller("", "local", "admin", open=True)


def caller(scope: Scope, tokens: Tokens, wrong: WrongTokens, require_token: bool = False) -> Caller:
    """Who sends a request.

    Args:
        scope: of the request.
        tokens: of the library.
        wrong: counts those that are not valid.
        require_token: whether nobody is served without one, not even who sits at this machine while there is none.

    Raises:
        ProblemError: 401 without a valid token, 403 from elsewhere while there is no token, 429 after many wrong ones.
    """
    connection = HTTPConnection(scope)
    same_origin(connection)
    if not tokens.all():
        if require_token:
            raise ProblemError(401, "the library has no token yet, and this server answers nobody without one", MAKE)
        return _local(connection)
    kind, _, given = connection.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not given.strip():
        raise ProblemError(401, "there is no token", MAKE)
    token = tokens.find(given.strip())
    if token is None:
        wrong.count_one(address(scope))
    assert token is not None
    return Caller(token.id, token.name, token.role, token.filters, token.restrictions)


def same_origin(connection: HTTPConnection) -> None:
    """403 for what a page of another site makes a browser send."""
    origin = connection.headers.get("origin")
    host = connection.headers.get("host", "")
    site = connection.headers.get("sec-fetch-site", "none")
    if (origin is not None and origin.partition("://")[2] != host) or site not in ("none", "same-origin"):
        fact = "a page of another site asks, and this server answers none but its own"
        raise ProblemError(403, fact, "open the page of this server; a proxy has to pass the header Host on")


def address(scope: Scope) -> str:
    """From where a request comes."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _local(connection: HTTPConnection) -> Caller:
    """Whoever sits at this machine; a name of another machine may be a page that has itself called so."""
    forwarded = [name for name in FORWARDED if name in connection.headers]
    host = connection.headers.get("host", "")
    name = host if host.startswith("[") and host.endswith("]") else host.rpartition(":")[0] or host
    if forwarded or not is_loopback(address(connection.scope)) or name not in NAMES:
        fact = "the library has no token yet, and without one only this machine is served"
        raise ProblemError(403, fact, MAKE)
    return LOCAL


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is that of this machine."""
    if host == "localhost":
        return True
    try:
        found = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
