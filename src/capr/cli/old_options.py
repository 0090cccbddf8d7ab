"""Old names of options, which work for one more release with a notice."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

ASPECTS = {"--cues": "--aspects-from-text", "--no-cues": "--no-aspects-from-text"}
# The new name for each old one, by the first word of the command.
OLD_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "ask": {"--top": "-k"},
    "suggest": {"--limit": "-k"},
    "supervise": ASPECTS,
    "train": {
        **ASPECTS,
        "--alike": "--hard-negative-share",
        "--context": "--long-context",
        "--hard": "--label-weight",
        "--no-context": "--no-long-context",
        "--over": "--network",
    },
    "serve": {
        "--feedback": "--max-judgements",
        "--largest-k": "--max-k",
        "--longest-query": "--max-query-length",
        "--unpacked": "--max-unpacked-mb",
        "--upload": "--max-upload-mb",
        "--waiting": "--max-waiting",
    },
}


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of the command line with the new names of options, and print a notice about each old one.

    >>> with_new_names(["serve", "library", "--max-k=50"])
    ['serve', 'library', '--max-k=50']
    """
    renamed = OLD_OPTIONS.get(arguments[0], {}) if arguments else {}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [_with_new_name(argument, renamed) for argument in arguments[:end]] + list(arguments[end:])


def _with_new_name(argument: str, renamed: Mapping[str, str]) -> str:
    old, equals, value = argument.partition("=")
    if old not in renamed:
        return argument
    new = renamed[old]
    print(f"{old} is now called {new}; the old name will be removed in the next release.", file=sys.stderr)
    return new + (equals if new.startswith("--") else "") + value
