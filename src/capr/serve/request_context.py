"""The context of a request: its caller, the documents that the caller may see, and its audit record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import Response

from capr.search import Library
from capr.serve.access import Caller
from capr.serve.audit import AuditRecord
from capr.serve.masking import Masking
from capr.serve.problems import ProblemError
from capr.serve.server import Server
from capr.text.digest import as_text

KEY = "capr.context"  # in the scope of a request
Done = TypeVar("Done")
bearer = HTTPBearer(auto_error=False, scheme_name="token", description="As `capr token create` gives it.")


@dataclass
class RequestContext:
    """The context that a route receives.

    Attributes:
        server: the server that handles the request.
        caller: the caller, with role and restrictions.
        record: the facts about the request for the audit trail.
        disconnected: an event that is set when the client disconnects.
    """

    server: Server
    caller: Caller
    record: AuditRecord = field(default_factory=AuditRecord)
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    async def run_heavy(self, task: Callable[[Library, Masking], Done]) -> Done:
        """Run a task that needs the models, on the documents that the caller may see."""
        await self.server.wait_until_loaded()
        return await self.server.heavy.run(lambda: task(*self._visible_library()), self.disconnected)

    async def run_light(self, task: Callable[[Library, Masking], Done]) -> Done:
        """Run a quick task on the documents that the caller may see."""
        return await self.server.light.run(lambda: task(*self._visible_library()), self.disconnected)

    def _visible_library(self) -> tuple[Library, Masking]:
        """Return the part of the library that the caller may see, and the masking of its texts."""
        library = self.server.library.within(self.caller.filters) if self.caller.filters else self.server.library
        return library, Masking(self.server.deidentifier, library)


def require_role(role: str) -> Callable[..., Awaitable[RequestContext]]:
    """Return the dependency of a route that needs a role. The middleware has identified the caller before."""

    async def dependency(request: Request, _: Annotated[Any, Depends(bearer)] = None) -> RequestContext:
        context: RequestContext = request.scope[KEY]
        if not context.caller.may(role):
            name, actual_role = context.caller.name, context.caller.role
            fact = f"this needs the role {role}, and the token of {name!r} has the role {actual_role}"
            raise ProblemError(403, fact, f"use a token of a {role} (capr token create --role {role})")
        if role != "reader" and context.caller.filters:
            fact = "a token that is restricted to some documents cannot change or export the library"
            raise ProblemError(403, fact, "use a token without restrictions")
        return context

    dependency.role = role  # type: ignore[attr-defined]
    return dependency


Reader = Annotated[RequestContext, Depends(require_role("reader"))]
Writer = Annotated[RequestContext, Depends(require_role("writer"))]
Admin = Annotated[RequestContext, Depends(require_role("admin"))]


def reply(record: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON reply, whatever values the metadata of documents have."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):  # metadata may contain NaN, or values that JSON does not have
        text = json.dumps(json.loads(as_text(record), parse_constant=str), ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")
