"""Tables in Markdown, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heading: str, lines: Iterable[Sequence[str]]) -> None:
    """Print a table; the heading has the names of the columns, separated by |."""
    names = heading.split("|")
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")
    print(flush=True)
