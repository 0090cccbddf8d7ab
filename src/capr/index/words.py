"""The index of words: BM25 over text, headings, titles and entities, by tantivy. Derived from the store."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from capr.annotate import Mention
from capr.documents import Document
from capr.index.derived import DamagedError, load_state, save_state
from capr.index.filters import DAY, ENTITY, Filters, Period, day_number, document_facts, passage_facts
from capr.index.protocol import Clause, Found, Stored

FORMAT = 1
TROUBLE = re.compile("corrupt|io ?error|exist|killed|lock|open|disk|space|thread", re.IGNORECASE)
HEAP = 64_000_000  # bytes that tantivy may use while it writes
OCCUR = {"should": Occur.Should, "must": Occur.Must, "not": Occur.MustNot}
MAGIC = 1337  # the last four bytes of tantivy's files
PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")  # files of a segment
WHOLE = ("entities", "aspect")  # fields whose values are compared as a whole
LONGEST = 60  # characters of a word that is kept; longer ones are no words


@contextmanager
def panics() -> Iterator[None]:
    """Where its files are damaged, or the disk is full, tantivy panics; that is no reason to end the process."""
    try:
        yield
    except BaseException as error:
        told = isinstance(error, ValueError) and TROUBLE.search(str(error))
        if type(error).__name__ != "PanicException" and not isinstance(error, OSError) and not told:
            raise
        raise DamagedError(str(error)) from error


@cache
def schema() -> Any:
    """The fields, with `facts` for filters."""
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


@cache
def analyzer() -> Any:
    """Words in lower case, without accents and endings."""
    parts = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(LONGEST),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("english"),
    ):
        parts = parts.filter(step)
    return parts.build()


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """A word in the form in which it is compared; empty, if it is none."""
    return "".join(stems(word)[:1])


def stems(text: str) -> list[str]:
    """The words of a text in the form in which they are compared.

    >>> stems("Ménière's diseases, 5 mg")
    ['menier', 's', 'diseas', '5', 'mg']
    """
    found: list[str] = analyzer().analyze(text)
    return found


def _opened(folder: Path) -> Any:
    index = tantivy.Index(schema(), path=str(folder))
    index.register_tokenizer("words", analyzer())
    index.config_reader(reload_policy="manual")
    return index


def _read_only(folder: Path) -> Any:
    """A searcher where nothing can be written.

    Beside the files that it opens tantivy writes a lock, so it gets links to them in a folder of its own.
    """
    with TemporaryDirectory() as place:
        for file in folder.absolute().iterdir():
            if file.suffix != ".lock":
                (Path(place) / file.name).symlink_to(file)
        return _opened(Path(place)).searcher()


class Words:
    """A state of the index, which later changes leave alone."""

    def __init__(self, folder: Path) -> None:
        """Opens the index; raises `DamagedError` if it cannot be read."""
        self.folder = folder
        state = load_state(folder)
        if state.get("format") != FORMAT:
            raise DamagedError(f"format {state.get('format')}")
        self.through, self.removed = int(state["through"]), int(state["removed"])
        if not (folder / "meta.json").is_file():
            raise DamagedError("meta.json is missing")
        with panics():
            self.searcher = _opened(folder).searcher() if os.access(folder, os.W_OK) else _read_only(folder)

    def __len__(self) -> int:
        return int(self.searcher.num_docs)

    def size(self) -> int:
        """Bytes."""
        total = 0
        for file in self._files():
            with suppress(FileNotFoundError):  # a writer has merged it meanwhile
                total += file.stat().st_size
        return total

    def damaged(self) -> list[str]:
        """The files that are missing, or whose checksum, which tantivy writes at their ends, is wrong."""
        found = []
        for file in self._files():
            try:
                sound = _sound(file)
            except FileNotFoundError:
                sound = file not in self._files()  # a writer has merged it meanwhile
            if not sound:
                found.append(file.name)
        return found

    def _files(self) -> list[Path]:
        """The files that count; what a killed process has left, or a writer is just writing, does not."""
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
    ) -> list[Found]:
        """The k best, best first; among equals the one that was added first.

        Args:
            clauses: what to look for.
            k: how many.
            filters: what they have to pass, which the index itself sees to.
            allowed: by number, whether a passage may be found; looks for more until k may, or there are no more.
            limit: how many to look for at first.
        """
        query = self._query(clauses, filters)
        if query is None:
            return []
        limit = max(k, limit)
        while True:
            scores, numbers = self._hits(query, limit)
            if allowed is None:
                break
            there = len(numbers)
            passed = np.flatnonzero(allowed.take(numbers, mode="clip") & (numbers < len(allowed)))
            scores, numbers = scores[passed], numbers[passed]
            if len(numbers) >= k or there < limit:
                break
            limit *= 4
        best = np.lexsort((numbers, -scores))[:k]
        return [
            Found(number, score) for number, score in zip(numbers[best].tolist(), scores[best].tolist(), strict=True)
        ]

    def among(self, clauses: Sequence[Clause], numbers: Iterable[int]) -> set[int]:
        """Those of some passages that match all that must be and nothing that must not."""
        query = self._query([clause for clause in clauses if clause.occur != "should"], None)
        if query is None:
            return set(numbers)
        wanted = list(numbers)
        some = Query.term_set_query(schema(), "number", wanted)
        both = Query.boolean_query([(Occur.Must, query), (Occur.Must, some)])
        return set(self._hits(both, max(1, len(wanted)))[1].tolist())

    def numbers(self) -> list[int]:
        """All passages."""
        found: list[int] = self._hits(Query.all_query(), max(1, len(self)))[1].tolist()
        return found

    def has(self, stem: str) -> bool:
        """Whether a word is in a passage that is there."""
        return len(self._hits(Query.term_query(schema(), "text", stem), 1)[1]) > 0

    def frequency(self, stem: str, filters: Filters | None = None) -> int:
        """In how many passages a word is, among those that pass."""
        with panics():
            if not filters:
                return int(self.searcher.doc_freq("text", stem))
            query = _passing(Query.term_query(schema(), "text", stem), filters)
            return int(self.searcher.search(query, 1, count=True).count)

    def _hits(self, query: Any, limit: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores and numbers, best first."""
        with panics():
            hits = self.searcher.search(query, limit, count=False).hits
            numbers = self.searcher.fast_field_values("number", [address for _, address in hits]) if hits else []
        if None in numbers:
            raise DamagedError("a passage has no number")
        return np.array([score for score, _ in hits], np.float64), np.array(numbers, np.int64)

    def _query(self, clauses: Sequence[Clause], filters: Filters | None) -> Any:
        """None if nothing is asked for."""
        parts = []
        should = False
        for clause in clauses:
            options = list(_options(clause))
            if not options and clause.occur == "must" and any(map(str.isalnum, clause.words)):
                options = [Query.empty_query()]  # a word so long that it is in no passage
            if not options:
                continue
            should |= clause.occur == "should"
            if clause.occur == "should":
                parts += [(Occur.Should, option) for option in options]  # flat, so that tantivy can skip
            else:
                wanted = Query.boolean_query([(Occur.Should, option) for option in options])
                parts.append((OCCUR[clause.occur], wanted))
        if not parts:
            return None
        musts = any(occur == Occur.Must for occur, _ in parts)
        if not should and not musts:  # only what must not be
            parts.append((Occur.Must, Query.const_score_query(Query.all_query(), 0.0)))
        return _passing(Query.boolean_query(parts), filters) if filters else Query.boolean_query(parts)


class WordsWriter:
    """Changes the index of words."""

    def __init__(self, folder: Path) -> None:
        """Goes on with what is there."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        with panics():
            self._index = _opened(folder)
            self._writer = self._index.writer(HEAP, 1)
            self._writer.garbage_collect_files()  # what a killed process has left would be in the way

    def add(self, document: int, passages: Sequence[Stored]) -> None:
        """Adds the passages of the document with that number."""
        if not passages:
            return
        source = Document(passages[0].entry.passage.document, "", "", passages[0].metadata)
        facts = list(document_facts(source))
        days = [day_number(value) for name, value in facts if name == DAY]
        for stored in passages:
            entry = stored.entry
            self._add(document, stored, [*facts, *passage_facts(entry.aspect, entry.mentions)], days)

    def _add(self, document: int, stored: Stored, facts: Iterable[tuple[str, str]], days: Sequence[int]) -> None:
        entry = stored.entry
        kept = tantivy.Document(
            number=stored.number,
            document=document,
            **({"day": days[0]} if days else {}),
            text=entry.text,
            heading=entry.passage.heading or "",
            title=stored.title,
            entities=list(_codes(entry.mentions)),
            aspect=entry.aspect,
            facts=[_fact(*fact) for fact in facts],
        )
        with panics():
            self._writer.add_document(kept)

    def remove(self, document: int) -> None:
        """Removes all passages of a document."""
        with panics():
            self._writer.delete_documents_by_term("document", document)

    def commit(self, through: int, removed: int) -> None:
        """Shows the changes; the numbers tell what of the store is in."""
        with panics():
            self._writer.commit()
        save_state(self.folder, {"format": FORMAT, "through": through, "removed": removed})

    def close(self) -> None:
        """Waits for what tantivy does in the background."""
        with panics():
            self._writer.wait_merging_threads()


def _sound(file: Path) -> bool:
    """Whether the checksum that tantivy has written at the end of a file is right."""
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - 8))
        length, magic = struct.unpack("<II", opened.read()) if size > 8 else (0, 0)
        if magic != MAGIC or length > size - 8:
            return False
        opened.seek(size - 8 - length)
        footer = opened.read(length)
        opened.seek(0)
        left, total = size - 8 - length, 0
        while left and (data := opened.read(min(left, 1 << 20))):
            total, left = zlib.crc32(data, total), left - len(data)
    try:
        return bool(json.loads(footer)["crc"] == total)
    except (ValueError, KeyError, TypeError):
        return False


def asks(clause: Clause) -> bool:
    """Whether a clause has words to look for."""
    return any(True for _ in _options(clause))


def _codes(mentions: Iterable[Mention]) -> Iterable[str]:
    return (mention.concept.code for mention in mentions if mention.concept is not None)


def _options(clause: Clause) -> Iterable[Any]:
    """The ways in which a clause can be matched."""
    for field, weight in clause.fields.items():
        terms: list[Any] = [clause.words] if field in WHOLE else stems(clause.words)
        if len(terms) == 1:
            query = Query.term_query(schema(), field, terms[0])
        elif terms:
            query = Query.phrase_query(schema(), field, terms)
        else:
            continue
        yield query if weight == 1 else Query.boost_query(query, weight)


def _passing(query: Any, filters: Filters) -> Any:
    """What a query finds among passages that pass; filters count for nothing in its scores."""
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
    """Passages of one of some periods."""
    numbers = [(day_number(since), day_number(until)) for since, until in periods]
    days = [
        (Occur.Should, Query.range_query(schema(), "day", tantivy.FieldType.Integer, low, high))
        for low, high in numbers
        if low <= high
    ]
    return Query.boolean_query(days) if days else Query.empty_query()
