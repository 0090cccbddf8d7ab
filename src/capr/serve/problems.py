"""Problems: errors as RFC 9457 documents, with the fact, the fix, and never a trace of the program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from capr.documents import BusyError, CaprError, NotThereError, UnavailableError

MEDIA = "application/problem+json"
STATUS: Sequence[tuple[type[CaprError], int]] = ((NotThereError, 404), (BusyError, 409), (UnavailableError, 503))
# A folder of this machine concerns nobody who asks over a network: the last name says enough.
PATH = re.compile(r"(?<![\w./:])(?:/[^\s/'\"(),;]+)+/([^\s/'\"(),;]+)")
# As RFC 9110 has them, whatever this version of Python calls them: clients compare the type.
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
SOON = 2  # seconds after which to try again what is not possible now
NOT_THERE = (
    "there is nothing of that name, or it may not be seen with this token",
    "check the name; POST api/search finds what there is",
)


class ProblemError(Exception):
    """A request that cannot be served, and what to do about it.

    Args:
        status: of HTTP.
        fact: what is wrong.
        fix: what the client can do.
        retry_after: seconds after which it may try again.
        fields: what is wrong with each field, where several are.
    """

    def __init__(
        self,
        status: int,
        fact: str,
        fix: str,
        retry_after: float | None = None,
        fields: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(fact)
        self.status, self.fact, self.fix, self.retry_after, self.fields = status, fact, fix, retry_after, fields

    @classmethod
    def of(cls, error: CaprError) -> ProblemError:
        """What an error of the library means to a client.

        What is not there and what may not be seen are told in the same words, which name nothing.
        """
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 422)
        if status == 404:
            return cls(404, *NOT_THERE)
        fact, _, fix = str(error).partition(" Fix: ")
        return cls(status, shown(fact).rstrip("."), shown(fix).rstrip("."), SOON if status in (409, 503) else None)

    def as_json(self, instance: str) -> dict[str, Any]:
        """The document."""
        title = TITLES.get(self.status) or HTTPStatus(self.status).phrase
        found: dict[str, Any] = {
            "type": f"urn:capr:problem:{title.lower().replace(' ', '-')}",
            "title": title,
            "status": self.status,
            "detail": self.fact,
            "fix": self.fix,
            "instance": instance,
        }
        if self.fields:
            found["errors"] = list(self.fields)
        return found

    def response(self, instance: str) -> Response:
        """The reply."""
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(max(1, round(self.retry_after)))
        if self.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="capr"'
        if self.status in (408, 413):
            headers["Connection"] = "close"  # the rest of the body is not read
        body = json.dumps(self.as_json(instance), ensure_ascii=False).encode("utf-8", "replace")
        return Response(body, self.status, headers, MEDIA)


def shown(text: str) -> str:
    """A message without the folders of this machine.

    >>> shown("there is no reader in /opt/capr/weights/reader. Fix: capr encode /srv/notes --encoder FOLDER")
    'there is no reader in reader. Fix: capr encode notes --encoder FOLDER'
    """
    return PATH.sub(r"\1", text)


def invalid(errors: Sequence[Mapping[str, Any]]) -> ProblemError:
    """What pydantic found wrong, all at once; what was given is not repeated, since it may be anything."""
    fields = [
        {"field": ".".join(str(part) for part in error["loc"]) or "body", "problem": _plain(str(error["msg"]))}
        for error in errors
    ]
    told = "; ".join(f"{one['field']}: {one['problem']}" for one in fields)
    fix = "send the fields as api/openapi.json describes them"
    return ProblemError(422, f"the request was not understood: {told}", fix, fields=fields)


def _plain(text: str) -> str:
    """A text that can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
