"""`Source`: an input file as a stream of exact text. It handles compression, byte order marks and encodings.

A byte that is not UTF-8 is read as Windows-1252, so that a single stray byte does not turn the rest of the file into
gibberish. The five bytes that Windows-1252 leaves undefined stay *surrogate-escaped* in the text (U+DC81 for 0x81).
Later, `reading` rejects only the records that hold such a byte.
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

HEAD_LENGTH = 1 << 16
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
    """A count of the bytes that gzip files unpack to, with an optional limit.

    A small gzip file may unpack to any number of bytes, so set a limit for files of unknown origin. Pass one object to
    several calls of `read` to count their files together.

    Args:
        limit: the number of bytes allowed; unlimited by default.
        fix: what the user can do about a larger file.

    Attributes:
        count: number of bytes so far.
    """

    def __init__(self, limit: int | None = None, fix: str = "unpack it, and read it in parts") -> None:
        self._limit, self._fix = limit, fix
        self.count = 0

    def add(self, count: int) -> None:
        """Add to the count.

        Raises:
            ReadError: the count exceeds the limit.
        """
        self.count += count
        if self._limit is not None and self.count > self._limit:
            fact = f"the gzip files up to this line unpack to more than the {self._limit:,} bytes that are allowed"
            raise ReadError(Problem(f"{fact}; the records before it were read", self._fix))


class GzipStream(io.RawIOBase):
    """A stream of the unpacked bytes of a gzip file, which counts them."""

    def __init__(self, stream: BinaryIO, unpacked: Unpacked) -> None:
        self._file, self._unpacked = gzip.GzipFile(fileobj=stream), unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._file.readinto(buffer)
        self._unpacked.add(count)
        return count


class Source:
    """An open input file.

    Use it as a context manager, and read it once: by `lines`, `chunks`, `text` or `data`.

    Attributes:
        label: the file as the user named it, for messages.
        name: the path below the folder that the user named, or the file name. Ids of documents begin with it.
        columns: the columns or fields that the user mapped, by capr's name.
        metadata: the file's row of the `metadata.csv` in the same folder.
        line: the number of the last line read, counted from 1.
        notices: notices about the file as a whole.
        encoding_notice: the notice that bytes were read as Windows-1252, if some were.
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
        self.encoding_notice: Notice | None = None
        self._raw = stream
        self._path: Path | None = None
        self._unpacked_before = copy(unpacked)  # the count before this file, for `reopen`
        self._wrapper: io.TextIOWrapper | None = None  # a reference, because a wrapper closes the file when it is freed
        buffered = io.BufferedReader(cast(io.RawIOBase, stream), HEAD_LENGTH)
        if buffered.peek(2)[:2] == b"\x1f\x8b":
            buffered = io.BufferedReader(GzipStream(buffered, unpacked or Unpacked()), HEAD_LENGTH)
            self.name = re.sub(r"\.gz$", "", self.name, flags=re.IGNORECASE)
        self._stream = buffered
        self.head_bytes = buffered.peek(HEAD_LENGTH)[:HEAD_LENGTH]
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
        """Open a file, or standard input if `path` is None."""
        stream = cast(BinaryIO, sys.stdin.buffer if path is None else path.open("rb", buffering=0))
        try:
            source = cls(stream, label, name, columns, metadata, unpacked)
        except BaseException:
            stream.close()
            raise
        source._path = path
        return source

    def reopen(self) -> Source | None:
        """Open the file a second time, for a format that must look ahead. Return None for standard input.

        The limit on unpacked bytes also holds for the second reading, whose count begins where that of the first began,
        so that no byte counts twice.
        """
        if self._path is None:
            return None
        return Source.open(self._path, self.label, self.name, self.columns, self.metadata, copy(self._unpacked_before))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int:
        """Number of bytes read from the disk, for progress."""
        return self._raw.tell() if self._raw.seekable() else 0

    @property
    def head(self) -> str:
        """The first characters, from which formats recognise a file, without incomplete or invalid characters."""
        return self.head_bytes.decode(self.encoding, errors="ignore")

    def lines(self) -> Iterator[str]:
        """Yield each line with its line end: `\\n`, `\\r\\n` or `\\r`, as it is in the file."""
        self._wrapper = self._text_stream()
        for line in self._wrapper:
            self.line += 1
            yield line if line.isascii() else self._recode(line)

    def chunks(self) -> Iterator[str]:
        """Yield the text in blocks of constant size, for formats without meaningful lines."""
        self._wrapper = self._text_stream()
        while chunk := self._wrapper.read(HEAD_LENGTH):
            yield chunk if chunk.isascii() else self._recode(chunk)

    def text(self) -> str:
        """Return the whole text."""
        return "".join(self.chunks())

    def data(self) -> bytes:
        """Return the unpacked bytes, for formats that are not text."""
        return self._stream.read()

    def document_id(self, record: int | str) -> str:
        """Return an id for a record that has no id: the file's name and the record's number."""
        return f"{self.name}#{record}"

    def _text_stream(self) -> io.TextIOWrapper:
        errors = "surrogateescape" if self.encoding.startswith("utf-8") else "strict"
        return io.TextIOWrapper(self._stream, self.encoding, errors=errors, newline="")

    def _recode(self, text: str) -> str:
        if not ESCAPED_BYTE.search(text):
            return text
        if not self.encoding_notice:
            location = f" (the first in line {self.line})" if self.line else ""
            fact = f"some bytes are not UTF-8{location} and were read as Windows-1252"
            fix = "save the file as UTF-8 if characters look wrong"
            self.encoding_notice = Notice(fact, fix, self.label)
        return text.translate(WINDOWS_1252)
