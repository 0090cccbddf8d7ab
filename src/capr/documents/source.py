"""An input file as exact text, in a stream: compression, byte order marks and encodings end here.

Bytes that are not UTF-8 are read as Windows-1252, one by one, so that a single stray byte does not turn the rest of
the file into gibberish. The five bytes that Windows-1252 leaves undefined stay *surrogate-escaped* in the text
(U+DC81 for 0x81): the record that holds one is refused later, by `reading`, and the other records are unharmed.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from capr.documents.problem import Notice, Problem, ReadError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD = 1 << 16
BYTE_ORDER_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
WINDOWS_1252 = {
    0xDC00 + byte: bytes([byte]).decode("cp1252")
    for byte in range(0x80, 0x100)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


class Unpacked:
    """How much gzip files unpack to, and how much they may: a small one may hold any number of bytes.

    Give the same to several readings to count them together.

    Args:
        most: bytes that are allowed; any number if not given.
        fix: what to do about more.

    Attributes:
        count: bytes so far.
    """

    def __init__(self, most: int | None = None, fix: str = "unpack it, and read it in parts") -> None:
        self._most, self._fix = most, fix
        self.count = 0

    def add(self, count: int) -> None:
        """Counts some more bytes.

        Raises:
            ReadError: there are too many.
        """
        self.count += count
        if self._most is not None and self.count > self._most:
            fact = f"unpacked, the gzip files up to this place have more than the {self._most:,} bytes that are allowed"
            raise ReadError(Problem(f"{fact}; the records before it were read", self._fix))


class Unpacking(io.RawIOBase):
    """The bytes of a gzip file, which are counted as they come."""

    def __init__(self, stream: BinaryIO, unpacked: Unpacked) -> None:
        self._file, self._unpacked = gzip.GzipFile(fileobj=stream), unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._file.readinto(buffer)
        self._unpacked.add(count)
        return count


class Source:
    """One opened file. Use as a context manager; read it once, by `lines`, `chunks`, `text` or `data`.

    Attributes:
        label: the file as the user named it, for messages.
        name: its path below the folder that the user named, or its file name: the stem of document ids.
        columns: which column or field holds what, where the user said so.
        metadata: what a `metadata.csv` beside the file says about it.
        line: the number of the line that was read last.
        notices: what the user should know about the file as a whole.
    """

    def __init__(
        self,
        stream: BinaryIO,
        label: str,
        name: str,
        columns: Mapping[str, str],
        metadata: Mapping[str, str],
        unpacked: Unpacked | None = None,
    ) -> None:
        self.label, self.name, self.columns, self.metadata = label, name, columns, metadata
        self.line = 0
        self.notices: list[Notice] = []
        self._raw = stream
        self._path: Path | None = None
        self._before = copy(unpacked)  # what was counted before this file, for whoever reads it again
        self._wrapper: io.TextIOWrapper | None = None  # kept: it closes the file when it is dropped
        self._stray_bytes = 0
        buffered = io.BufferedReader(cast(io.RawIOBase, stream), HEAD)
        if buffered.peek(2)[:2] == b"\x1f\x8b":
            buffered = io.BufferedReader(Unpacking(buffered, unpacked or Unpacked()), HEAD)
            self.name = re.sub(r"\.gz$", "", self.name, flags=re.IGNORECASE)
        self._stream = buffered
        self.head_bytes = buffered.peek(HEAD)[:HEAD]
        self.encoding = next((name for mark, name in BYTE_ORDER_MARKS if self.head_bytes.startswith(mark)), "utf-8")

    @classmethod
    def open(
        cls,
        path: Path | None,
        label: str,
        name: str,
        columns: Mapping[str, str],
        metadata: Mapping[str, str],
        unpacked: Unpacked | None = None,
    ) -> Source:
        """Opens a file, or standard input for None."""
        stream = cast(BinaryIO, sys.stdin.buffer if path is None else path.open("rb", buffering=0))
        try:
            source = cls(stream, label, name, columns, metadata, unpacked)
        except BaseException:
            stream.close()
            raise
        source._path = path
        return source

    def again(self) -> Source | None:
        """The same file from its start, for a format that must look ahead; None for standard input.

        What it unpacks to is limited, too, and counted for itself: it is not there twice.
        """
        if self._path is None:
            return None
        return Source.open(self._path, self.label, self.name, self.columns, self.metadata, copy(self._before))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int:
        """How many bytes of the file have been taken from the disk; for progress."""
        return self._raw.tell() if self._raw.seekable() else 0

    @property
    def head(self) -> str:
        """The first characters, to recognise a format by; characters that are cut or broken are left out."""
        return self.head_bytes.decode(self.encoding, errors="ignore")

    def lines(self) -> Iterator[str]:
        """Line by line with the line ends, which are `\\n`, `\\r\\n` or `\\r` and are not translated."""
        self._wrapper = self._text_stream()
        for line in self._wrapper:
            self.line += 1
            yield line if line.isascii() else self._recode(line)

    def chunks(self) -> Iterator[str]:
        """Piece by piece, for formats in which lines mean nothing."""
        self._wrapper = self._text_stream()
        while chunk := self._wrapper.read(HEAD):
            yield chunk if chunk.isascii() else self._recode(chunk)

    def text(self) -> str:
        """All of it."""
        return "".join(self.chunks())

    def data(self) -> bytes:
        """The bytes, decompressed, for formats that are not text."""
        return self._stream.read()

    def document_id(self, record: int | str) -> str:
        """An id for a record that has none: the file's name and the record's number."""
        return f"{self.name}#{record}"

    def _text_stream(self) -> io.TextIOWrapper:
        errors = "surrogateescape" if self.encoding.startswith("utf-8") else "strict"
        return io.TextIOWrapper(self._stream, self.encoding, errors=errors, newline="")

    def _recode(self, text: str) -> str:
        if not ESCAPED_BYTE.search(text):
            return text
        if not self._stray_bytes:
            where = f" (the first in line {self.line})" if self.line else ""
            fact = f"it is not all UTF-8{where}; the other bytes were read as Windows-1252"
            self.notices.append(Notice(fact, "save the file as UTF-8 if characters look wrong", self.label))
        self._stray_bytes += 1
        return text.translate(WINDOWS_1252)
