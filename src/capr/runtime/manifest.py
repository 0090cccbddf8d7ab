"""Manifests: `manifest.json` in the folder of a model says what the model is and how to run it.

Each kind of model has a dataclass of its own in the file that runs it; its fields are the keys of the JSON object.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from capr.documents import CaprError

FILE = "manifest.json"
LEAST = 4  # the minimum number of word pieces: two marks, and text between them


@dataclass(frozen=True)
class Manifest:
    """The fields that all manifests have.

    Attributes:
        name: the model's name, for people.
        kind: the kind of model; see `capr.runtime.kinds`.
    """

    name: str
    kind: str


RENAMED = {"padded": "min_query_pieces"}  # old keys of manifests, with their new names
Kind = TypeVar("Kind", bound=Manifest)


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    >>> with_article("encoder"), with_article("ranker")
    ('an encoder', 'a ranker')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def lacking(folder: Path, noun: str, file: str, fix: str) -> CaprError:
    """Return the error to raise when the folder of a model lacks a file, or does not exist itself.

    Args:
        folder: the folder.
        noun: what the folder should hold: `encoder`.
        file: the file.
        fix: the end of the message.
    """
    if not folder.is_dir():
        fact = f"{folder} is a file, not a folder" if folder.is_file() else f"there is no folder {folder}"
    else:
        fact = f"{folder} is not {with_article(noun)}: it has no {file}"
    return CaprError(f"{fact}. Fix: {fix}.")


def read_json(folder: Path, fix: str) -> dict[str, Any]:
    """Return the manifest of a folder as a dictionary; the error messages end with `fix`."""
    path = folder / FILE
    try:
        record = json.loads(path.read_bytes())
        if not isinstance(record, dict):
            raise ValueError("it is not an object")
    except FileNotFoundError as error:
        raise CaprError(f"{folder} has no {FILE}. Fix: {fix}.") from error
    except (OSError, ValueError) as error:
        raise CaprError(f"{path} is invalid ({error}). Fix: {fix}.") from error
    return record


def parse(kind: type[Kind], record: Mapping[str, Any], path: Path, fix: str) -> Kind:
    """Make a manifest from a dictionary, and check every value against its type.

    Raises:
        CaprError: a key is missing or unknown, or a value is not of its type.
    """
    record = {RENAMED.get(name, name): value for name, value in record.items()}
    schema = {field.name: field for field in fields(kind)}
    faults = [f"it does not know {name!r}{_nearest_key(name, schema)}" for name in record if name not in schema]
    faults += [f"it lacks {name!r}" for name, field in schema.items() if _is_required(field) and name not in record]
    hints = get_type_hints(kind)
    values = {name: value for name, value in record.items() if name in schema}
    for name, value in values.items():
        check = CHECKS.get(hints[name])
        if check is not None and not check[1](value):
            faults.append(f"{name} is {value!r}, and must be {check[0]}")
    if "pieces" in values and not faults and values["pieces"] < LEAST:
        faults.append(f"pieces is {values['pieces']}, and must be at least {LEAST}")
    if faults:
        raise CaprError(f"{path} is invalid: {'; '.join(faults)}. Fix: {fix}.")
    return kind(**values)


def _nearest_key(name: str, keys: Collection[str]) -> str:
    """Return what to add to a fact about an unknown key: the key that is probably meant."""
    nearest = get_close_matches(name.lower(), keys, 1)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# The type of a field -> the description of a valid value, and the check.
CHECKS: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", _is_text),
    int: ("a whole number, 0 or more", _is_count),
    float: ("a number", _is_number),
}
