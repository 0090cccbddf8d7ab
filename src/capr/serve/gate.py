"""The gate: what every request passes on its way in, and every reply on its way out.

In: who is it, how often do they ask, how large is the request. Out: headers that keep browsers safe, the audit trail,
metrics. Whatever is not named as open is closed.
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
from capr.serve.access import address, caller
from capr.serve.audit import Record
from capr.serve.exchange import KEY, Exchange
from capr.serve.limits import body
from capr.serve.problems import ProblemError
from capr.serve.server import Server

log = logging.getLogger("capr")
OPEN = ("/", "/health", "/ready")  # and the files of the page: nothing of the library is in any of them
PAGE, API = "/page/", "/api"
OTHER = "other"  # what no route is for, or was refused before one was looked for
LONGEST = 1000  # characters of a path that are told
UPLOAD = "/api/documents"
METHODS = ("GET", "POST", "DELETE", "HEAD", "OPTIONS")  # that are counted by name: a client may call one anything
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
INSIDE = (
    "something went wrong inside the server",
    "try again; if it happens again, whoever runs the server finds the reason in its log",
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


class Gate:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self.server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        # An id may have a / in it, written %2F, so that routes are found by the path as it was sent.
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        scope = {**scope, "path": quote(raw.partition(b"?")[0], safe="/%:@!$&'()*+,;=-._~")}
        await Passage(self.server, self._app, scope).pass_through(receive, send)


def is_open(path: str) -> bool:
    """Whether anybody may have it."""
    return path in OPEN or path.startswith(PAGE)


class Passage:
    """One request and its reply."""

    def __init__(self, server: Server, app: ASGIApp, scope: Scope) -> None:
        self._server, self._app, self._scope = server, app, scope
        self._begun, self._status, self._refused = time.perf_counter(), 0, False
        self._exchange: Exchange | None = None

    async def pass_through(self, receive: Receive, send: Send) -> None:
        """In, through the application, and out."""

        async def out(message: Message) -> None:
            await self._out(message, send)

        watching: asyncio.Task[None] | None = None
        try:
            received = await self._in(receive)
            watching = asyncio.create_task(self._watch(receive)) if self._exchange is not None else None
            await self._app(self._scope, received, out)
        except ProblemError as problem:
            await self._tell(problem, receive, out)
        except CaprError as error:
            await self._tell(ProblemError.of(error), receive, out)
        except Exception:
            log.exception("%s %s failed", self._scope["method"], self._label)
            await self._tell(ProblemError(500, *INSIDE), receive, out)
        finally:
            if watching is not None:
                watching.cancel()
        seconds = time.perf_counter() - self._begun
        method = self._scope["method"] if self._scope["method"] in METHODS else "other"
        self._server.metrics.request(self._label, method, self._status, seconds)

    async def _watch(self, receive: Receive) -> None:
        """Learns whether whoever asked has hung up; all of the request has been read before."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if self._exchange is not None:
            self._exchange.gone.set()

    @property
    def _label(self) -> str:
        """The route, not the path: that may have an id in it."""
        found = str(getattr(self._scope.get("route"), "path", OTHER))
        api = self._scope["path"].startswith(API) and not found.startswith(API)
        return f"{API}{found}" if api and found != OTHER else found

    async def _in(self, receive: Receive) -> Receive:
        server, scope = self._server, self._scope
        if not scope["path"].startswith(PAGE):  # the page has some forty files, which cost next to nothing
            server.rate.check(f"address {address(scope)}")
        if is_open(scope["path"]):
            return receive
        who = caller(scope, server.tokens, server.wrong, server.settings.require_token)
        self._exchange = scope[KEY] = Exchange(server, who)
        if who.id:
            server.rate.check(f"token {who.id}")
        uploads = scope["path"] == UPLOAD and who.may("writer")
        settings = server.settings
        return await body(scope, receive, settings.upload if uploads else settings.body, settings.body_seconds)

    async def _out(self, message: Message, send: Send) -> None:
        if message["type"] == "http.response.start" and not self._status:
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if not is_open(self._scope["path"]) or "Cache-Control" not in headers:
                headers["Cache-Control"] = "no-store"
            if not await self._audited():
                self._refused = True
                await self._refuse(send)
        if not self._refused:
            await send(message)

    async def _audited(self) -> bool:
        """Writes the line of this request, if it is one that has to be told; False if that is not possible."""
        if is_open(self._scope["path"]) or self._status == 429:
            return True
        audit, found = self._server.audit, self._exchange
        record = found.record if found else Record()
        tried = {"path": self._scope["path"][:LONGEST]} if self._label == OTHER else {}
        line = audit.line(
            record if self._status < 400 else record.refused,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            who=found.caller.name if found else "",
            token=found.caller.id if found else "",
            address=address(self._scope),
            method=self._scope["method"],
            route=self._label,
            **tried,
            status=self._status,
            seconds=round(time.perf_counter() - self._begun, 4),
        )
        try:
            await audit.write(line)
        except OSError as error:
            log.error("the audit trail %s cannot be written: %s", audit.folder, error)
            self._server.metrics.count("capr_audit_failures_total")
            return False
        return True

    async def _refuse(self, send: Send) -> None:
        """503 instead of a reply that nobody could account for."""
        self._status = 503
        fact = "the audit trail cannot be written, and without it nothing is answered"
        problem = ProblemError(503, fact, "whoever runs the server has to make room on its disk", 30)
        response = problem.response(self._scope["path"])
        response.headers.update({**HEADERS, "Cache-Control": "no-store"})
        await send({"type": "http.response.start", "status": 503, "headers": response.raw_headers})
        await send({"type": "http.response.body", "body": bytes(response.body)})

    async def _tell(self, problem: ProblemError, receive: Receive, out: Send) -> None:
        if not self._status:  # else the reply has begun, and can only be broken off
            await problem.response(self._scope["path"])(self._scope, receive, out)
