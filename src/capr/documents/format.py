"""The protocol between `reading` and the formats: one file per format, one line in `formats.FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capr.documents.document import Document
from capr.documents.problem import Problem
from capr.documents.source import Source

Records = Iterator[Document | Problem]


@dataclass(frozen=True, slots=True)
class Format:
    """A format that capr reads.

    Attributes:
        name: what `--format` takes.
        about: one line for people.
        recognises: from the file's lower-case name (without `.gz`) and its first characters.
        read: a generator of documents and of problems, in the order of the file. It holds one record at a time.
    """

    name: str
    about: str
    recognises: Callable[[str, str], bool]
    read: Callable[[Source], Records]
