"""Problem documents (RFC 9457): the fact and the fix of an error, never a stack trace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from capr.documents import BusyError, CaprError, NotFoundError, UnavailableError

MEDIA = "application/problem+json"
STATUS: Sequence[tuple[type[CaprError], int]] = ((NotFoundError, 404), (BusyError, 409), (UnavailableError, 503))
# Clients must not learn the folders of the server, so messages have only the last part of a path.
PATH = re.compile(r"(?<![\w./:])(?:/[^\s/'\"(),;]+)+/([^\s/'\"(),;]+)")
# The names of RFC 9110; those in Python differ between versions, and clients compare the type.
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
SOON = 2  # seconds until a client should try again
NOT_THERE = (
    "it does not exist, or this token may not see it",
    "check the name; POST api/search lists what exists",
)


class ProblemError(Exception):
    """A request that the server cannot answer, with a fix.

    Args:
        status: the HTTP status.
        fact: what is wrong.
        fix: what the client can do.
        retry_after: seconds until the client may try again.
        fields: what is wrong with each field.
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
        """Return the problem for an error of the library.

        A document that does not exist and one that the token may not see give the same words, which name neither.
        """
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 422)
        if status == 404:
            return cls(404, *NOT_THERE)
        fact, _, fix = str(error).partition(" Fix: ")
        return cls(
            status,
            hide_folders(fact).rstrip("."),
            hide_folders(fix).rstrip("."),
            SOON if status in (409, 503) else None,
        )

    def as_json(self, instance: str) -> dict[str, Any]:
        """Return the problem document."""
        title = TITLES.get(self.status) or HTTPStatus(self.status).phrase
        document: dict[str, Any] = {
            "type": f"urn:capr:problem:{title.lower().replace(' ', '-')}",
            "title": title,
            "status": self.status,
            "detail": self.fact,
            "fix": self.fix,
            "instance": instance,
        }
        if self.fields:
            document["errors"] = list(self.fields)
        return document

    def response(self, instance: str) -> Response:
        """Return the reply."""
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(max(1, round(self.retry_after)))
        if self.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="capr"'
        if self.status in (408, 413):
            headers["Connection"] = "close"  # the rest of the body is not read
        body = json.dumps(self.as_json(instance), ensure_ascii=False).encode("utf-8", "replace")
        return Response(body, self.status, headers, MEDIA)


def hide_folders(text: str) -> str:
    """Return a message without the folders of the server.

    >>> hide_folders("there is no reader in /opt/capr/weights/reader. Fix: capr encode /srv/notes --encoder FOLDER")
    'there is no reader in reader. Fix: capr encode notes --encoder FOLDER'
    """
    return PATH.sub(r"\1", text)


def invalid(errors: Iterable[Mapping[str, Any]]) -> ProblemError:
    """Return one problem for all errors of pydantic, unknown names first, because they may be the cause of others.

    It does not repeat the values of the input, which may contain anything. An error may have `known`: the names that
    are allowed in the place of an unknown one.
    """
    fields, fixes = [], []
    for error in sorted(errors, key=lambda error: "known" not in error):
        place, problem, fix = _explain(error)
        fields.append({"field": _plain(".".join(map(str, place)) or "body"), "problem": _plain(problem)})
        fixes.append(_plain(fix))
    details = "; ".join(f"{field['field']}: {field['problem']}" for field in fields)
    fix = "; ".join(dict.fromkeys(fixes))
    return ProblemError(422, f"the request is not valid: {details}", fix, fields=fields)


def _explain(error: Mapping[str, Any]) -> tuple[Sequence[str | int], str, str]:
    """Return the place of an error of pydantic, the problem and the fix."""
    place = error["loc"]
    if error.get("type") == "json_invalid":
        cause = str(error.get("ctx", {}).get("error", "")).lower()
        where = f", character {place[-1] + 1}" if place and isinstance(place[-1], int) else ""
        return ("body",), f"not valid JSON{where}: {cause}", "write valid JSON"
    if "known" in error:
        known, name = list(error["known"]), str(place[-1])
        kind = "parameter" if place[0] == "query" else "field"
        nearest = get_close_matches(name.lower(), known, 1)
        if nearest:
            return place, f"unknown {kind}; did you mean {nearest[0]}?", f"write {nearest[0]} instead of {name}"
        return place, f"unknown {kind}; known here: {', '.join(known) or 'none'}", f"leave out {name}"
    problem, _, fix = str(error["msg"]).removeprefix("Value error, ").partition(" Fix: ")
    return place, problem.rstrip("."), fix.rstrip(".") or "send the fields as api/openapi.json describes them"


def _plain(text: str) -> str:
    """Return the text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
