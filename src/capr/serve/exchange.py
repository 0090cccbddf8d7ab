"""An exchange: one request with who sends it, what it may see, and what is told of it in the audit trail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import Response

from capr.index.digest import as_text
from capr.search import Library
from capr.serve.access import Caller
from capr.serve.audit import Record
from capr.serve.masking import Masking
from capr.serve.problems import ProblemError, invalid
from capr.serve.server import Server

KEY = "capr.exchange"  # in the scope of a request
Done = TypeVar("Done")
bearer = HTTPBearer(auto_error=False, scheme_name="token", description="As `capr token create` gives it.")


@dataclass
class Exchange:
    """What a route works with.

    Attributes:
        server: that serves it.
        caller: who asks.
        record: what the audit trail tells.
        gone: is set when whoever asked has hung up.
    """

    server: Server
    caller: Caller
    record: Record = field(default_factory=Record)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def heavy(self, what: Callable[[Library, Masking], Done]) -> Done:
        """Does what needs the models, with the documents that may be seen."""
        await self.server.loaded()
        return await self.server.heavy.run(lambda: what(*self._seen()), self.gone)

    async def light(self, what: Callable[[Library, Masking], Done]) -> Done:
        """Does what is quick, with the documents that may be seen."""
        return await self.server.light.run(lambda: what(*self._seen()), self.gone)

    def _seen(self) -> tuple[Library, Masking]:
        library = self.server.library.within(self.caller.filters) if self.caller.filters else self.server.library
        return library, Masking(self.server.deidentifier, library)

    def check(self, k: int = 1, **texts: str | None) -> None:
        """422 for what exceeds the limits of this server, all at once."""
        settings = self.server.settings
        wrong = [
            {"field": name, "problem": f"it has {len(text):,} characters, and {settings.longest_query:,} are allowed"}
            for name, text in texts.items()
            if text is not None and len(text) > settings.longest_query
        ]
        if k > settings.largest_k:
            wrong.append({"field": "k", "problem": f"it is {k:,}, and {settings.largest_k:,} is allowed"})
        if wrong:
            told = "; ".join(f"{one['field']}: {one['problem']}" for one in wrong)
            raise ProblemError(422, f"the request asks for too much: {told}", "ask for less", fields=wrong)


def needs(role: str) -> Callable[..., Awaitable[Exchange]]:
    """What a route depends on that may be used with a role; the gate has seen to it that somebody is known."""

    async def exchange(request: Request, _: Annotated[Any, Depends(bearer)] = None) -> Exchange:
        found: Exchange = request.scope[KEY]
        _check_names(request)
        if not found.caller.may(role):
            fact = (
                f"this needs the role {role}, and the token of {found.caller.name!r} has the role {found.caller.role}"
            )
            raise ProblemError(403, fact, f"use a token of a {role} (capr token create --role {role})")
        if role != "reader" and found.caller.filters:
            fact = "a token that is restricted to some documents cannot change or export the library"
            raise ProblemError(403, fact, "use a token without restrictions")
        return found

    exchange.role = role  # type: ignore[attr-defined]
    return exchange


def _check_names(request: Request) -> None:
    """422 for what stands after the ? of an address and means nothing there, so that no filter is dropped silently."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    told = f"it is not known here; {', '.join(known) or 'nothing'} is"
    wrong = [{"loc": ("query", name), "msg": told} for name in request.query_params if name not in known]
    if wrong:
        raise invalid(wrong)


Reader = Annotated[Exchange, Depends(needs("reader"))]
Writer = Annotated[Exchange, Depends(needs("writer"))]
Admin = Annotated[Exchange, Depends(needs("admin"))]


def reply(found: Mapping[str, Any], status: int = 200) -> Response:
    """A JSON reply of whatever a document may hold."""
    try:
        text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):  # a number that is none, or a mapping of another kind, in metadata
        text = json.dumps(json.loads(as_text(found), parse_constant=str), ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")
