"""Print results of any kind, as one JSON object or as text with notices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rich.console import Console

from capr.cli import inputs
from capr.documents import Span
from capr.search import Listing
from capr.text.digest import as_text

Results = TypeVar("Results", bound=Listing[Any])


def show(results: Results, as_json: bool, show_text: Callable[[Results, Console], None]) -> None:
    """Print results. The JSON includes the notices; otherwise they go to standard error."""
    if as_json:
        show_json(results.as_json())
        return
    show_text(results, inputs.terminal())
    stderr = inputs.terminal(stderr=True)
    for notice in results.notices:
        stderr.print(f"Notice: {inputs.printable(notice)}")


def place(document: str, span: Span, headings: Sequence[str]) -> str:
    """Format the position of an item: `n1 [12, 17) PLAN`."""
    return f"{document} {inputs.format_span(span)} {' | '.join(headings)}".rstrip()


def show_json(record: dict[str, Any]) -> None:
    """Print one JSON object on a line."""
    sys.stdout.write(as_text(record) + "\n")
