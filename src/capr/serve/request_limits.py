"""Limits that a server's settings place on the fields of a request.

pydantic checks them together with everything else in a request, so one reply names every problem, and the OpenAPI
document of each server states its own limits.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from capr.serve.settings import Settings

# The settings of the server that handles the current request; the middleware sets them.
SETTINGS: ContextVar[Settings] = ContextVar("capr.serve.settings", default=Settings(library=""))  # noqa: B039 (frozen)


@dataclass(frozen=True)
class AtMost:
    """Annotates a number or a text with the setting that limits its value or its length.

    Args:
        setting: the name of the setting.
        fixed: a lower limit that no setting can raise.
    """

    setting: str
    fixed: int | None = None

    @property
    def limit(self) -> int:
        """The limit of the current server."""
        limit: int = getattr(SETTINGS.get(), self.setting)
        return limit if self.fixed is None else min(limit, self.fixed)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the limit after the type."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """State the limit in the OpenAPI document."""
        json_schema = handler(schema)
        json_schema["maxLength" if json_schema.get("type") == "string" else "maximum"] = self.limit
        return json_schema

    def _check(self, value: Any) -> Any:
        size, unit, verb = (len(value), " characters", "write") if isinstance(value, str) else (value, "", "ask for")
        if size > self.limit:
            fix = f"{verb} at most {self.limit:,}{unit}"
            detail = f"{size:,}{unit} is over this server's limit of {self.limit:,}. Fix: {fix}"
            raise PydanticCustomError("over_limit", "{detail}", {"detail": detail})
        return value
