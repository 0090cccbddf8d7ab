"""A route that reports everything that is wrong with a request in one reply."""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from capr.serve.request_bodies import with_known_fields


class ApiRoute(APIRoute):
    """Rejects query parameters that the route does not know, so that no filter is dropped silently."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()
        validate = self._validator()

        async def handle(request: Request) -> Response:
            unknown = self._unknown_parameters(request)
            try:
                if not unknown:
                    return await answer(request)
                await validate(request)
            except RequestValidationError as error:
                unknown += with_known_fields(error.errors(), self.body_field and self.body_field.field_info.annotation)
            raise RequestValidationError(unknown)

        return handle

    def _validator(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that checks the role and the fields of a request and does nothing else."""

        async def nothing(**_: Any) -> Response:
            return Response()

        checks_only = copy.copy(self)
        checks_only.dependant = copy.copy(self.dependant)
        checks_only.dependant.call = nothing
        return APIRoute.get_route_handler(checks_only)

    def _unknown_parameters(self, request: Request) -> list[dict[str, Any]]:
        known = [field.alias for field in self.dependant.query_params]
        names = dict.fromkeys(name for name in request.query_params if name not in known)
        return [{"loc": ("query", name), "msg": "unknown parameter", "known": known} for name in names]
