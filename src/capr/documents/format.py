"""The interface between `reading` and the formats. A format is one file and one line of `formats.MODULES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capr.documents.document import Document
from capr.documents.problem import Problem
from capr.documents.source import Source

Records = Iterator[Document | Problem]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format that capr reads.

    Attributes:
        name: the value of `--format` that selects the format.
        about: one line that describes the format.
        recognises: returns whether a file has this format, from its lower-case name (without `.gz`) and its first
            characters.
        read: the reader. It yields documents and problems in the order of the file and holds one record at a time.
    """

    name: str
    about: str
    recognises: Callable[[str, str], bool]
    read: Callable[[Source], Records]
