"""The word index: BM25 over text, headings, titles and entities, by tantivy. It is derived from the store."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from capr.annotate import Mention
from capr.documents import Document
from capr.index.embedded.derived import DamagedError, Match, load_state, save_state
from capr.index.filters import DAY, ENTITY, Filters, Period, day_number, document_facts, passage_facts
from capr.index.records import Clause, StoredPassage
from capr.text.stemming import analyzer, stems

FORMAT = 1
FILE_ERROR = re.compile("corrupt|io ?error|exist|killed|lock|open|disk|space|thread", re.IGNORECASE)
HEAP = 64_000_000  # bytes that tantivy may use while it writes
OCCUR = {"should": Occur.Should, "must": Occur.Must, "not": Occur.MustNot}
MAGIC = 1337  # the last four bytes of tantivy's files
PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")  # suffixes of a segment's files
WHOLE = ("entities", "aspect")  # fields whose values are compared as a whole


@contextmanager
def tantivy_errors() -> Iterator[None]:
    """Raise `DamagedError` when tantivy panics, as it does if its files are damaged or the disk is full."""
    try:
        yield
    except BaseException as error:
        about_files = isinstance(error, ValueError) and FILE_ERROR.search(str(error))
        if type(error).__name__ != "PanicException" and not isinstance(error, OSError) and not about_files:
            raise
        raise DamagedError(str(error)) from error


@cache
def schema() -> Any:
    """Return the fields of the index; filters use `facts`."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("number", fast=True, indexed=True)
    builder.add_integer_field("document", indexed=True)
    builder.add_integer_field("day", fast=True, indexed=True)
    for name in ("text", "heading", "title"):
        builder.add_text_field(name, tokenizer_name="words")
    for name in WHOLE:
        builder.add_text_field(name, tokenizer_name="raw", index_option="freq")
    builder.add_text_field("facts", tokenizer_name="raw", index_option="basic")
    return builder.build()


def _open(folder: Path) -> Any:
    index = tantivy.Index(schema(), path=str(folder))
    index.register_tokenizer("words", analyzer())
    index.config_reader(reload_policy="manual")
    return index


def _open_read_only(folder: Path) -> Any:
    """Return a searcher of a folder that this user cannot write.

    tantivy writes a lock file beside the files that it opens, so it opens links to them in a temporary folder.
    """
    with TemporaryDirectory() as links:
        for file in folder.absolute().iterdir():
            if file.suffix != ".lock":
                (Path(links) / file.name).symlink_to(file)
        return _open(Path(links)).searcher()


class WordIndex:
    """One state of the index; later changes do not affect it."""

    def __init__(self, folder: Path) -> None:
        """Open the index; raise `DamagedError` if it cannot be read."""
        self.folder = folder
        state = load_state(folder)
        if state.get("format") != FORMAT:
            raise DamagedError(f"format {state.get('format')}")
        self.through, self.removed = int(state["through"]), int(state["removed"])
        if not (folder / "meta.json").is_file():
            raise DamagedError("meta.json is missing")
        with tantivy_errors():
            self.searcher = _open(folder).searcher() if os.access(folder, os.W_OK) else _open_read_only(folder)

    def __len__(self) -> int:
        return int(self.searcher.num_docs)

    def size(self) -> int:
        """Return the bytes of the files."""
        total = 0
        for file in self._files():
            with suppress(FileNotFoundError):  # a writer has just merged it
                total += file.stat().st_size
        return total

    def damaged(self) -> list[str]:
        """Return the files that are missing or have a wrong checksum (tantivy writes it at the end of a file)."""
        damaged = []
        for file in self._files():
            try:
                intact = _is_intact(file)
            except FileNotFoundError:
                intact = file not in self._files()  # a writer has just merged it
            if not intact:
                damaged.append(file.name)
        return damaged

    def _files(self) -> list[Path]:
        """Return the files of the last commit, without those of a killed process or an active writer."""
        try:
            segments = json.loads((self.folder / "meta.json").read_text("utf-8"))["segments"]
            names = []
            for segment in segments:
                name = segment["segment_id"].replace("-", "")
                names += [f"{name}.{part}" for part in PARTS]
                if segment["deletes"]:
                    names.append(f"{name}.{segment['deletes']['opstamp']}.del")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError("meta.json cannot be read") from error
        return [self.folder / name for name in names]

    def search(
        self,
        clauses: Sequence[Clause],
        k: int,
        filters: Filters | None = None,
        allowed: NDArray[np.bool_] | None = None,
        limit: int = 0,
    ) -> list[Match]:
        """Return the k best matches, best first; of two with equal scores, the passage that was added first.

        Args:
            clauses: the clauses of the query.
            k: the maximum number of matches.
            filters: filters that tantivy applies.
            allowed: by number, whether a passage may match. The search fetches more passages until k of them are
                allowed, or no more match.
            limit: the number of passages to fetch at first.
        """
        query = self._query(clauses, filters)
        if query is None:
            return []
        limit = max(k, limit)
        while True:
            scores, numbers = self._hits(query, limit)
            if allowed is None:
                break
            fetched = len(numbers)
            rows = np.flatnonzero(allowed.take(numbers, mode="clip") & (numbers < len(allowed)))
            scores, numbers = scores[rows], numbers[rows]
            if len(numbers) >= k or fetched < limit:
                break
            limit *= 4
        best = np.lexsort((numbers, -scores))[:k]
        return [
            Match(number, score) for number, score in zip(numbers[best].tolist(), scores[best].tolist(), strict=True)
        ]

    def among(self, clauses: Sequence[Clause], numbers: Iterable[int]) -> set[int]:
        """Return which of the passages match all clauses with `must` and `not`."""
        query = self._query([clause for clause in clauses if clause.occur != "should"], None)
        if query is None:
            return set(numbers)
        passages = list(numbers)
        among = Query.term_set_query(schema(), "number", passages)
        restricted = Query.boolean_query([(Occur.Must, query), (Occur.Must, among)])
        return set(self._hits(restricted, max(1, len(passages)))[1].tolist())

    def numbers(self) -> list[int]:
        """Return the numbers of all passages."""
        numbers: list[int] = self._hits(Query.all_query(), max(1, len(self)))[1].tolist()
        return numbers

    def has(self, stem: str) -> bool:
        """Whether a passage, other than removed ones, contains a word."""
        return len(self._hits(Query.term_query(schema(), "text", stem), 1)[1]) > 0

    def frequency(self, stem: str, filters: Filters | None = None) -> int:
        """Return the number of passages that match the filters and contain a word."""
        with tantivy_errors():
            if not filters:
                return int(self.searcher.doc_freq("text", stem))
            query = _filtered(Query.term_query(schema(), "text", stem), filters)
            return int(self.searcher.search(query, 1, count=True).count)

    def _hits(self, query: Any, limit: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return scores and numbers, best first."""
        with tantivy_errors():
            hits = self.searcher.search(query, limit, count=False).hits
            numbers = self.searcher.fast_field_values("number", [address for _, address in hits]) if hits else []
        if None in numbers:
            raise DamagedError("a passage has no number")
        return np.array([score for score, _ in hits], np.float64), np.array(numbers, np.int64)

    def _query(self, clauses: Sequence[Clause], filters: Filters | None) -> Any:
        """Return the tantivy query, or None if the clauses contain no words."""
        parts = []
        should = False
        for clause in clauses:
            options = list(_options(clause))
            if not options and clause.occur == "must" and any(map(str.isalnum, clause.words)):
                options = [Query.empty_query()]  # the word is too long to be indexed, so no passage has it
            if not options:
                continue
            should |= clause.occur == "should"
            if clause.occur == "should":
                parts += [(Occur.Should, option) for option in options]  # flat, so that tantivy can skip
            else:
                any_option = Query.boolean_query([(Occur.Should, option) for option in options])
                parts.append((OCCUR[clause.occur], any_option))
        if not parts:
            return None
        must = any(occur == Occur.Must for occur, _ in parts)
        if not should and not must:  # tantivy matches nothing if all clauses are `not`
            parts.append((Occur.Must, Query.const_score_query(Query.all_query(), 0.0)))
        return _filtered(Query.boolean_query(parts), filters) if filters else Query.boolean_query(parts)


class WordIndexWriter:
    """Changes the word index."""

    def __init__(self, folder: Path) -> None:
        """Open the index in a folder; create it if the folder is empty."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        with tantivy_errors():
            self._index = _open(folder)
            self._writer = self._index.writer(HEAP, 1)
            self._writer.garbage_collect_files()  # files of a killed process would be in the way

    def add(self, document: int, passages: Sequence[StoredPassage]) -> None:
        """Add the passages of the document with that number."""
        if not passages:
            return
        source = Document(passages[0].entry.passage.document, "", "", passages[0].metadata)
        facts = list(document_facts(source))
        days = [day_number(value) for name, value in facts if name == DAY]
        for stored in passages:
            entry = stored.entry
            self._add(document, stored, [*facts, *passage_facts(entry.aspect, entry.mentions)], days)

    def _add(self, document: int, stored: StoredPassage, facts: Iterable[tuple[str, str]], days: Sequence[int]) -> None:
        entry = stored.entry
        record = tantivy.Document(
            number=stored.order,
            document=document,
            **({"day": days[0]} if days else {}),
            text=entry.text,
            heading=entry.passage.heading or "",
            title=stored.title,
            entities=list(_codes(entry.mentions)),
            aspect=entry.aspect,
            facts=[_fact(*fact) for fact in facts],
        )
        with tantivy_errors():
            self._writer.add_document(record)

    def remove(self, document: int) -> None:
        """Remove all passages of a document."""
        with tantivy_errors():
            self._writer.delete_documents_by_term("document", document)

    def commit(self, through: int, removed: int) -> None:
        """Commit the changes, and record the last passage and the last removal of the store in the index."""
        with tantivy_errors():
            self._writer.commit()
        save_state(self.folder, {"format": FORMAT, "through": through, "removed": removed})

    def close(self) -> None:
        """Wait for tantivy's background merges."""
        with tantivy_errors():
            self._writer.wait_merging_threads()


def _is_intact(path: Path) -> bool:
    """Whether a file has the checksum that tantivy wrote at its end."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        length, magic = struct.unpack("<II", file.read()) if size > 8 else (0, 0)
        if magic != MAGIC or length > size - 8:
            return False
        file.seek(size - 8 - length)
        footer = file.read(length)
        file.seek(0)
        remaining, checksum = size - 8 - length, 0
        while remaining and (data := file.read(min(remaining, 1 << 20))):
            checksum, remaining = zlib.crc32(data, checksum), remaining - len(data)
    try:
        return bool(json.loads(footer)["crc"] == checksum)
    except (ValueError, KeyError, TypeError):
        return False


def has_words(clause: Clause) -> bool:
    """Whether a clause has words to search for."""
    return any(True for _ in _options(clause))


def _codes(mentions: Iterable[Mention]) -> Iterable[str]:
    return (mention.concept.code for mention in mentions if mention.concept is not None)


def _options(clause: Clause) -> Iterable[Any]:
    """Yield the queries for a clause, one for each field."""
    for field, weight in clause.fields.items():
        terms: list[Any] = [clause.words] if field in WHOLE else stems(clause.words)
        if len(terms) == 1:
            query = Query.term_query(schema(), field, terms[0])
        elif terms:
            query = Query.phrase_query(schema(), field, terms)
        else:
            continue
        yield query if weight == 1 else Query.boost_query(query, weight)


def _filtered(query: Any, filters: Filters) -> Any:
    """Restrict a query to the passages that match the filters; the filters do not change its scores."""
    outer = [(Occur.Must, query)]
    for condition in filters.conditions:
        values = [_fact(condition.name, v) for v in condition.values]
        facts = Query.term_set_query(schema(), "facts", values) if values else Query.empty_query()
        outer.append((Occur.MustNot, facts) if condition.exclude else (Occur.Must, Query.const_score_query(facts, 0.0)))
    if filters.entities:
        facts = Query.term_set_query(schema(), "facts", [_fact(ENTITY, v) for v in filters.entity_values])
        outer.append((Occur.Must, Query.const_score_query(facts, 0.0)))
    if filters.periods:
        outer.append((Occur.Must, Query.const_score_query(_within(filters.periods), 0.0)))
    if filters.not_days:
        outer.append((Occur.MustNot, _within(filters.not_days)))
    return Query.boolean_query(outer)


def _fact(name: str, value: str) -> str:
    return f"{name}\t{value}"


def _within(periods: Iterable[Period]) -> Any:
    """Return the query for passages with a day in one of the periods."""
    numbers = [(day_number(since), day_number(until)) for since, until in periods]
    days = [
        (Occur.Should, Query.range_query(schema(), "day", tantivy.FieldType.Integer, low, high))
        for low, high in numbers
        if low <= high
    ]
    return Query.boolean_query(days) if days else Query.empty_query()
