"""The middleware: checks that every request passes before the application, and every reply after it.

Before: rate limits, access and the size of the request. After: security headers, the audit trail and metrics. Every
address needs access unless it is listed as open.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capr.documents import CaprError
from capr.serve.access import client_address, identify_caller
from capr.serve.audit import AuditRecord
from capr.serve.limits import read_body
from capr.serve.problems import ProblemError
from capr.serve.request_context import KEY, RequestContext
from capr.serve.request_limits import SETTINGS
from capr.serve.server import Server

log = logging.getLogger("capr")
# These addresses and the files of the page need no token, because they contain nothing of the library.
OPEN = ("/", "/health", "/ready", "/docs", "/api/openapi.json")
PAGE, BROWSER, API = "/page/", "/docs", "/api"
OTHER = "other"  # the label of requests without a route, or rejected before routing
LONGEST = 1000  # characters of a path in the audit trail
UPLOAD = "/api/documents"
# Metrics count these methods by name, and all others together: a client may invent any number.
METHODS = ("GET", "POST", "DELETE", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
BROWSER_POLICY = POLICY.replace("img-src 'self'", "img-src 'self' data:")  # Swagger UI's style sheet has its icons
INSIDE = (
    "something went wrong inside the server",
    "try again; if it happens again, ask the administrator to look in the server's log",
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Middleware:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self.server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        SETTINGS.set(self.server.settings)
        # An id may contain a / written as %2F, so routing uses the path in its encoded form.
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        scope = {**scope, "path": quote(raw.partition(b"?")[0], safe="/%:@!$&'()*+,;=-._~")}
        await RequestGuard(self.server, self._app, scope).pass_through(receive, send)


def is_open(path: str) -> bool:
    """Return whether an address needs no token."""
    return path in OPEN or path.startswith((PAGE, f"{BROWSER}/"))


class RequestGuard:
    """One request and its reply."""

    def __init__(self, server: Server, app: ASGIApp, scope: Scope) -> None:
        self._server, self._app, self._scope = server, app, scope
        self._started, self._status, self._refused = time.perf_counter(), 0, False
        self._context: RequestContext | None = None

    async def pass_through(self, receive: Receive, send: Send) -> None:
        """Check the request, run the application, and send its reply."""

        async def send_checked(message: Message) -> None:
            await self._send(message, send)

        watcher: asyncio.Task[None] | None = None
        try:
            checked_receive = await self._check_request(receive)
            watcher = asyncio.create_task(self._watch(receive)) if self._context is not None else None
            await self._app(self._scope, checked_receive, send_checked)
        except ProblemError as problem:
            await self._send_problem(problem, receive, send_checked)
        except CaprError as error:
            await self._send_problem(ProblemError.of(error), receive, send_checked)
        except Exception:
            log.exception("%s %s failed", self._scope["method"], self._label)
            await self._send_problem(ProblemError(500, *INSIDE), receive, send_checked)
        finally:
            if watcher is not None:
                watcher.cancel()
        seconds = time.perf_counter() - self._started
        method = self._scope["method"] if self._scope["method"] in METHODS else "other"
        self._server.metrics.request(self._label, method, self._status, seconds)

    async def _watch(self, receive: Receive) -> None:
        """Note when the client disconnects. The whole request has been read by now."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if self._context is not None:
            self._context.disconnected.set()

    @property
    def _label(self) -> str:
        """The route. Metrics must not use the path, because it may contain an id."""
        route = str(getattr(self._scope.get("route"), "path", OTHER))
        api = self._scope["path"].startswith(API) and not route.startswith(API)
        return f"{API}{route}" if api and route != OTHER else route

    async def _check_request(self, receive: Receive) -> Receive:
        """Check rate, access and size. Return a `receive` that replays the body."""
        server, scope = self._server, self._scope
        if not scope["path"].startswith(PAGE):  # the page has some forty files, which cost little
            server.rate_limit.check(f"address {client_address(scope)}")
        if is_open(scope["path"]):
            return receive
        caller = identify_caller(scope, server.tokens, server.wrong_tokens, server.settings.require_token)
        self._context = scope[KEY] = RequestContext(server, caller)
        if caller.id:
            server.rate_limit.check(f"token {caller.id}")
        is_upload = scope["path"] == UPLOAD and caller.may("writer")
        settings = server.settings
        max_bytes = settings.max_upload if is_upload else settings.max_body
        return await read_body(scope, receive, max_bytes, settings.body_seconds)

    async def _send(self, message: Message, send: Send) -> None:
        """Send a message of the reply, after its headers are added and its audit line is on disk."""
        if message["type"] == "http.response.start" and not self._status:
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if self._scope["path"] == BROWSER:
                headers["Content-Security-Policy"] = BROWSER_POLICY
            if not is_open(self._scope["path"]) or "Cache-Control" not in headers:
                headers["Cache-Control"] = "no-store"
            if not await self._write_audit_line():
                self._refused = True
                await self._refuse(send)
        if not self._refused:
            await send(message)

    async def _write_audit_line(self) -> bool:
        """Write the audit line of this request, if it needs one. Return False if the write fails."""
        if is_open(self._scope["path"]) or self._status == 429:
            return True
        audit, context = self._server.audit, self._context
        record = context.record if context else AuditRecord()
        path = {"path": self._scope["path"][:LONGEST]} if self._label == OTHER else {}
        line = audit.line(
            record if self._status < 400 else record.refused,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            who=context.caller.name if context else "",
            token=context.caller.id if context else "",
            address=client_address(self._scope),
            method=self._scope["method"],
            route=self._label,
            **path,
            status=self._status,
            seconds=round(time.perf_counter() - self._started, 4),
        )
        try:
            await audit.write(line)
        except OSError as error:
            log.error("the audit trail %s cannot be written: %s", audit.folder, error)
            self._server.metrics.count("capr_audit_failures_total")
            return False
        return True

    async def _refuse(self, send: Send) -> None:
        """Send 503 instead of a reply that the audit trail does not record."""
        self._status = 503
        fact = "the audit trail cannot be written, and the server sends no reply without it"
        problem = ProblemError(503, fact, "ask the administrator to free space on the server's disk", 30)
        response = problem.response(self._scope["path"])
        response.headers.update({**HEADERS, "Cache-Control": "no-store"})
        await send({"type": "http.response.start", "status": 503, "headers": response.raw_headers})
        await send({"type": "http.response.body", "body": bytes(response.body)})

    async def _send_problem(self, problem: ProblemError, receive: Receive, send: Send) -> None:
        if not self._status:  # a reply that has begun can only be cut off
            await problem.response(self._scope["path"])(self._scope, receive, send)
