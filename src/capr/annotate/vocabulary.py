"""The vocabulary: diseases, symptoms and drugs with all their names, by which texts and queries are understood.

The table vocabulary.tsv.gz ships with capr (docs/vocabulary.md has its sources and licences); users add tables of
their own.
"""

from __future__ import annotations

import csv
import gzip
import io
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from heapq import nsmallest
from importlib.resources import files
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

from capr.annotate.names import key, plain_key
from capr.documents import CaprError

COLUMNS = ("code", "name", "synonyms", "kind", "codes")  # of a table that a user adds; code and name are needed
LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
MANY = 200  # completions that are worth a look


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing under all its names.

    Attributes:
        code: with the system that it comes from, such as `MESH:D009203`.
        kind: `disease`, `symptom` or `drug`, or what a user's table says.
        name: the preferred one.
        synonyms: all others.
        codes: the same thing in other systems, such as `ICD10CM:I21`.
    """

    code: str
    kind: str
    name: str
    synonyms: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """The system of the code; empty if it names none."""
        return self.code.partition(":")[0] if ":" in self.code else ""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the preferred one first."""
        return (self.name, *self.synonyms)

    def as_json(self) -> dict[str, Any]:
        """System, code and preferred name."""
        return {"system": self.system, "code": self.code, "name": self.name}


class Suggestion(NamedTuple):
    """A completion: the name that fits what was typed, and what it means."""

    name: str
    concept: Concept


class Vocabulary:
    """Names and what they mean.

    >>> vocabulary = Vocabulary.load()
    >>> concept = vocabulary.find("heart attacks")
    >>> concept.name, concept.code, "ICD10CM:I21" in concept.codes
    ('myocardial infarction', 'MESH:D009203', True)
    >>> vocabulary.synonyms("heart attack")[:4]
    ['myocardial infarction', 'acute myocardial infarction', 'AMI', 'cardiac infarction']
    """

    def __init__(self, rows: Iterable[str] = (), added: Iterable[Concept] = ()) -> None:
        """Made by `load`. Rows are lines of the shipped table; they are taken apart when they are needed."""
        self._rows: list[str | Concept] = []
        self._known: dict[int, int] = {}
        self._short: dict[str, list[int]] = {}
        self.by_key: dict[str, int] = {}  # the number of the concept that each key means
        for number, row in enumerate(rows):
            self._rows.append(row)
            for name in row[row.rindex("\t") + 1 :].split("|"):
                self.by_key[name] = number
        self.by_key.pop("", None)
        for concept in added:
            for name in concept.names:
                self.by_key[key(name)] = len(self._rows)
            self._rows.append(concept)

    @classmethod
    def load(cls, *tables: str | Path) -> Vocabulary:
        """The vocabulary that ships with capr, and the tables (CSV) that are named; their names come first.

        A table has a first line with its columns: code and name, and if wanted synonyms (with | between them), kind
        and codes.
        """
        return _shipped() if not tables else cls(_shipped_rows(), [c for table in tables for c in read_table(table)])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Concept]:
        return map(self.concept, range(len(self._rows)))

    def concept(self, number: int) -> Concept:
        """The concept of that number."""
        row = self._rows[number]
        if isinstance(row, str):
            code, kind, name, synonyms, codes, _ = row.split("\t")
            row = Concept(code, kind, name, _parts(synonyms), _parts(codes))
            self._rows[number] = row
        return row

    def find(self, name: str) -> Concept | None:
        """What a name means, in any spelling: case, accents, hyphens and the plural do not count."""
        number = self.by_key.get(key(name))
        if number is None:  # FEVER is no abbreviation, and `mi` is what somebody types who means MI
            plain = plain_key(name)
            number = self.by_key.get(plain, self._abbreviations.get(plain))
        return None if number is None else self.concept(number)

    def by_code(self, code: str) -> Concept | None:
        """The concept that has the code, in whichever system."""
        number = self._by_code.get(code.upper())
        return None if number is None else self.concept(number)

    def synonyms(self, name: str) -> list[str]:
        """The other names of what a name means, the preferred one first; none for an unknown name."""
        concept = self.find(name)
        return [other for other in concept.names if plain_key(other) != plain_key(name)] if concept else []

    def suggest(self, typed: str, limit: int = 10) -> list[Suggestion]:
        """What somebody who types may mean, best first: one name for each concept, at most one typing error away.

        Names that begin with what was typed come before those in which a later word does. Where there is neither, names
        count that begin with it but for one letter wrong, missing, added or exchanged with the next. Among equals,
        short names of concepts that many systems know come first.

        >>> [(s.name, s.concept.name) for s in Vocabulary.load().suggest("hart att")]
        [('heart attack', 'myocardial infarction')]
        """
        wanted = _typed(typed).strip()
        if not wanted or limit < 1:
            return []
        found = self._suggestions(chain(self._starting(wanted), self._containing(wanted)), limit)
        return found or self._suggestions(self._mistyped(wanted), limit)

    def _suggestions(self, entries: Iterable[int], limit: int) -> list[Suggestion]:
        found: dict[int, Suggestion] = {}
        for i in entries:
            _, number, name = self._entries[i]
            if self.by_key.get(key(name), number) == number:  # a user's table may give the name another meaning
                found.setdefault(number, Suggestion(name, self.concept(number)))
            if len(found) == limit:
                break
        return list(found.values())

    @cached_property
    def _abbreviations(self) -> Mapping[str, int]:
        """Abbreviations in lower case."""
        return {name.lower(): number for name, number in self.by_key.items() if not name.islower()}

    @cached_property
    def _by_code(self) -> Mapping[str, int]:
        return {code.upper(): i for i, c in enumerate(self) for code in (*c.codes[::-1], c.code)}

    @cached_property
    def _entries(self) -> list[tuple[str, int, str]]:
        """What can be typed for each name, sorted: the name as it is typed, the concept's number, the name itself."""
        entries = []
        for number, row in enumerate(self._rows):
            if isinstance(row, str):
                _, _, name, synonyms, _, _ = row.split("\t")
                names = (name, *synonyms.split("|")) if synonyms else (name,)
            else:
                names = row.names
            entries += [(_typed(name), number, name) for name in names]
        entries.sort()
        return entries

    @cached_property
    def _typable(self) -> list[str]:
        return [entry[0] for entry in self._entries]

    @cached_property
    def _text(self) -> str:
        return "\n".join(self._typable)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(typed) + 1 for typed in self._typable)]

    def _ranked(self, wanted: str, candidates: Iterable[int]) -> list[int]:
        """The best of the names first."""
        return nsmallest(MANY, candidates, key=lambda i: (self._typable[i] != wanted, self._rarity(i)))

    def _rarity(self, i: int) -> int:
        """Low for the short names of well-known concepts."""
        typed, number, name = self._entries[i]
        known = self._known.get(number)
        concept = self.concept(number)
        if known is None:
            systems = {code.partition(":")[0] for code in (concept.code, *concept.codes)}
            known = self._known[number] = 3 * len(systems) + min(8, len(concept.synonyms))
        return len(typed) - known - 6 * (name == concept.name)

    def _range(self, start: str) -> range:
        begin = bisect_left(self._typable, start)
        return range(begin, bisect_left(self._typable, start + "\U0010ffff", begin))

    def _starting(self, wanted: str) -> list[int]:
        if len(wanted) > 3:
            return self._ranked(wanted, self._range(wanted))
        found = self._short.get(wanted)
        if found is None:
            found = self._ranked(wanted, self._range(wanted))
            if len(found) == MANY:  # thousands of names begin so
                self._short[wanted] = found
        return found

    def _containing(self, wanted: str) -> Iterator[int]:
        """Names of which a later word begins with what was typed; a generator, so that it is not looked for in vain."""
        found: list[int] = []
        position = -1
        while len(wanted) > 2 and len(found) < 10 * MANY:
            position = self._text.find(f" {wanted}", position + 1)
            if position < 0:
                break
            found.append(bisect_left(self._line_starts, position) - 1)
        yield from self._ranked(wanted, found)

    def _mistyped(self, wanted: str) -> list[int]:
        found: set[int] = set()
        for i in range(len(wanted) if len(wanted) > 3 else 0):
            if not self._range(wanted[:i]):  # no name begins like that, so the mistake is before
                break
            for spelling in _edits(wanted, i):
                begin = bisect_left(self._typable, spelling)
                if begin < len(self._typable) and self._typable[begin].startswith(spelling):
                    found.update(self._range(spelling)[:MANY])
        return self._ranked(wanted, found)


def _edits(word: str, i: int) -> Iterator[str]:
    """All spellings one typing error at the i-th letter away."""
    yield word[:i] + word[i + 1 :]
    if i + 1 < len(word):
        yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    for letter in LETTERS:
        yield word[:i] + letter + word[i:]
        yield word[:i] + letter + word[i + 1 :]


def _typed(name: str) -> str:
    """A name as somebody types it: without capitals, hyphens, accents and 's."""
    words = " ".join(name.lower().split()).replace("-", " ").replace("’", "'").replace("'s", "").replace("'", "")
    return words if words.isascii() else key(words) or words


def _parts(column: str) -> tuple[str, ...]:
    return tuple(column.split("|")) if column else ()


def _shipped_rows() -> list[str]:
    table = files("capr.annotate").joinpath("vocabulary.tsv.gz").read_bytes()
    return gzip.decompress(table).decode("utf-8").split("\n")[1:-1]


@cache
def _shipped() -> Vocabulary:
    return Vocabulary(_shipped_rows())


def read_table(path: str | Path) -> list[Concept]:
    """The concepts of a user's table (CSV, or TSV by its name); every row that is wrong is named."""
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CaprError(f"{path}: cannot be read ({error}). Fix: name a CSV file in UTF-8.") from error
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: dict[str, Concept] = {}
    lines: dict[str, int] = {}
    problems = []
    try:
        given = [column.strip().lower() for column in rows.fieldnames or ()]
        rows.fieldnames = given
        if not {"code", "name"} <= set(given) <= set(COLUMNS) or len(set(given)) < len(given):
            fix = f"begin with a line such as {','.join(COLUMNS[:3])}; {' and '.join(COLUMNS[3:])} may follow"
            raise CaprError(f"{path}, line 1: the columns are {', '.join(given) or 'missing'}. Fix: {fix}.")
        for row in rows:
            concept = Concept(
                _column(row, "code"), _column(row, "kind") or "term", _column(row, "name"),
                _trimmed(row, "synonyms"), _trimmed(row, "codes"),
            )  # fmt: skip
            fact = _wrong(row, concept, lines)
            if fact:
                problems.append(f"{path}, line {rows.line_num}: {fact}.")
            else:
                found[concept.code], lines[concept.code] = concept, rows.line_num
    except csv.Error as error:
        problems.append(f"{path}, line {rows.reader.line_num}: not CSV ({error}). Fix: close the quotes.")
    if problems:
        raise CaprError("\n".join(problems))
    return list(found.values())


def _wrong(row: Mapping[str | None, Any], concept: Concept, lines: Mapping[str, int]) -> str:
    if row.get(None):
        return "it has more fields than the first line. Fix: put quotes around a field with a comma in it"
    if not concept.code:
        return f"{concept.name or 'the row'!r} has no code. Fix: give it one, of your own if need be, such as LOCAL:1"
    if not concept.name:
        return f"{concept.code} has no name. Fix: write its preferred name"
    if concept.code in lines:
        line = lines[concept.code]
        return f"the code {concept.code} is already in line {line}. Fix: make them one row, with | between synonyms"
    if not all(key(name) for name in concept.names):
        return f"{concept.code} has a name without a letter or digit. Fix: write the words that stand in texts"
    return ""


def _column(row: Mapping[str, str | None], name: str) -> str:
    return (row.get(name) or "").strip()


def _trimmed(row: Mapping[str, str | None], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in (row.get(name) or "").split("|") if part.strip())
