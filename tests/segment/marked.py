"""Texts in which `‖` marks the end of each sentence, by hand. The rules were made with `dev` and are measured on `test`."""

from collections.abc import Iterator
from pathlib import Path

MARK = "‖"


def marked_texts(split: str) -> Iterator[tuple[str, str, set[int]]]:
    """The name, the text without its marks, and where the sentences end in it."""
    for path in sorted((Path(__file__).parent / "sentences" / split).glob("*.txt")):
        pieces = path.read_bytes().decode().split(MARK)
        ends, position = set(), 0
        for piece in pieces[:-1]:
            position += len(piece)
            ends.add(position)
        yield path.name, "".join(pieces), ends


def f1(right: int, found: int, marked: int) -> float:
    return 2 * right / (found + marked)
