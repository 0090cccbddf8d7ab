"""Access: identify the caller of a request, and check the role."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.requests import HTTPConnection
from starlette.types import Scope

from capr.index import Filters
from capr.serve.limits import WrongTokens
from capr.serve.problems import ProblemError
from capr.serve.tokens import ROLES, Restrictions, TokenStore

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")  # names of this machine in the header Host
# Headers that proxies add. Behind a proxy, every request seems to come from this machine.
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
CREATE_TOKEN = "create a token (capr token create LIBRARY --name NAME), and send it as Authorization: Bearer TOKEN"
SEND_TOKEN = "send yours as Authorization: Bearer TOKEN, or ask the administrator for one"


@dataclass(frozen=True)
class Caller:
    """The caller of a request.

    Attributes:
        id: the id of the token; empty without a token.
        name: the name of the holder.
        role: the role of the token.
        filters: the conditions on every document that the caller may see.
        restrictions: the same conditions as the administrator wrote them.
        open: whether the library has no tokens, so that every user of this machine is an administrator.
    """

    id: str
    name: str
    role: str
    filters: Filters = field(default_factory=Filters)
    restrictions: Restrictions = field(default_factory=dict)
    open: bool = False

    def may(self, role: str) -> bool:
        """Return whether the role of the caller includes another role."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Caller("", "local", "admin", open=True)


def identify_caller(scope: Scope, tokens: TokenStore, wrong_tokens: WrongTokens, require_token: bool = False) -> Caller:
    """Return the caller of a request.

    Args:
        scope: the scope of the request.
        tokens: the tokens of the library.
        wrong_tokens: the counter of tokens that are not valid.
        require_token: whether every caller needs a token, even users of this machine while no token exists.

    Raises:
        ProblemError: 401 without a valid token; 403 from another machine while no token exists; 429 after many wrong
            tokens.
    """
    connection = HTTPConnection(scope)
    check_same_origin(connection)
    if not tokens.all():
        if require_token:
            raise ProblemError(401, "the library has no token yet, and this server requires one", CREATE_TOKEN)
        return _local(connection)
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise ProblemError(401, "the request has no token", SEND_TOKEN)
    token = tokens.find(secret.strip())
    if token is None:
        wrong_tokens.reject(client_address(scope))
    return Caller(token.id, token.name, token.role, token.filters, token.restrictions)


def check_same_origin(connection: HTTPConnection) -> None:
    """Reject requests that a page of another site makes a browser send.

    Raises:
        ProblemError: 403 for such a request.
    """
    origin = connection.headers.get("origin")
    host = connection.headers.get("host", "")
    site = connection.headers.get("sec-fetch-site", "none")
    if (origin is not None and origin.partition("://")[2] != host) or site not in ("none", "same-origin"):
        fact = "a page of another site sent the request, and this server answers only its own page"
        raise ProblemError(403, fact, "open the page of this server; a proxy must pass the header Host on")


def client_address(scope: Scope) -> str:
    """Return the IP address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _local(connection: HTTPConnection) -> Caller:
    """Return the local caller of a library without tokens.

    Reject proxies, other machines and other host names: a page of another site may use a DNS name that resolves to
    this machine.

    Raises:
        ProblemError: 403 for any of these.
    """
    forwarded = [name for name in PROXY_HEADERS if name in connection.headers]
    host = connection.headers.get("host", "")
    name = host if host.startswith("[") and host.endswith("]") else host.rpartition(":")[0] or host
    if forwarded or not is_loopback(client_address(connection.scope)) or name not in LOCAL_HOSTS:
        fact = "the library has no token yet, and without one the server answers only this machine"
        raise ProblemError(403, fact, CREATE_TOKEN)
    return LOCAL


def is_loopback(host: str) -> bool:
    """Return whether an IP address or a host name is a loopback address of this machine."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
