"""The vocabulary: diseases, symptoms and drugs with all their names, by which texts and queries are understood.

The table vocabulary.tsv.gz ships with capr (docs/vocabulary.md has its sources and licences); users add tables of
their own.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from capr.annotate.completion import Completion, Suggestion
from capr.annotate.concept import Concept
from capr.annotate.names import key, plain_key
from capr.annotate.table import read_table


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
        return self._completion.suggest(typed, limit)

    @cached_property
    def _abbreviations(self) -> Mapping[str, int]:
        """Abbreviations in lower case."""
        return {name.lower(): number for name, number in self.by_key.items() if not name.islower()}

    @cached_property
    def _completion(self) -> Completion:
        return Completion(self._names(), self.concept, lambda name: self.by_key.get(key(name)))

    def _names(self) -> Iterator[tuple[str, int]]:
        """All names with the numbers of their concepts; rows are not taken apart for good, which takes a second."""
        for number, row in enumerate(self._rows):
            if isinstance(row, str):
                _, _, name, synonyms, _ = row.split("\t", 4)
                yield name, number
                for synonym in _parts(synonyms):
                    yield synonym, number
            else:
                for name in row.names:
                    yield name, number

    @cached_property
    def _by_code(self) -> Mapping[str, int]:
        return {code.upper(): i for i, c in enumerate(self) for code in (*c.codes[::-1], c.code)}


def _parts(column: str) -> tuple[str, ...]:
    return tuple(column.split("|")) if column else ()


def _shipped_rows() -> list[str]:
    table = files("capr.annotate").joinpath("vocabulary.tsv.gz").read_bytes()
    return gzip.decompress(table).decode("utf-8").split("\n")[1:-1]


@cache
def _shipped() -> Vocabulary:
    return Vocabulary(_shipped_rows())
