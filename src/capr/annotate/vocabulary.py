"""The vocabulary: diseases, symptoms and drugs with all their names.

The table vocabulary.tsv.gz is built in (docs/reference/vocabulary.md lists its sources and licences). Users add
their own tables.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from capr.annotate.completion import Completion, Suggestion
from capr.annotate.concept import Concept
from capr.annotate.table import read_table
from capr.deprecation import renamed_arguments
from capr.text.names import key, plain_key


class Vocabulary:
    """Names and their concepts.

    >>> vocabulary = Vocabulary.load()
    >>> concept = vocabulary.find("heart attacks")
    >>> concept.name, concept.code, "ICD10CM:I21" in concept.codes
    ('myocardial infarction', 'MESH:D009203', True)
    >>> vocabulary.synonyms("heart attack")[:4]
    ['myocardial infarction', 'acute myocardial infarction', 'AMI', 'cardiac infarction']
    """

    def __init__(self, rows: Iterable[str] = (), added: Iterable[Concept] = ()) -> None:
        """Use `load` instead. Rows are lines of the built-in table, which are parsed on first use."""
        self._rows: list[str | Concept] = []
        self.by_key: dict[str, int] = {}  # key of a name to the number of its concept
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
        """Load the built-in vocabulary and your own CSV tables, which take precedence.

        The first line of a table names its columns: code and name, and optionally synonyms (separated by |), kind and
        codes.
        """
        return _shipped() if not tables else cls(_shipped_rows(), [c for table in tables for c in read_table(table)])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Concept]:
        return map(self.concept, range(len(self._rows)))

    def concept(self, number: int) -> Concept:
        """Return the concept with a number."""
        row = self._rows[number]
        if isinstance(row, str):
            code, kind, name, synonyms, codes, _ = row.split("\t")
            row = Concept(code, kind, name, _items(synonyms), _items(codes))
            self._rows[number] = row
        return row

    def find(self, name: str) -> Concept | None:
        """Return the concept of a name; case, accents, hyphens and the plural do not count."""
        number = self.by_key.get(key(name))
        if number is None:  # FEVER may be a plain word, and `mi` the abbreviation MI
            plain = plain_key(name)
            number = self.by_key.get(plain, self._abbreviations.get(plain))
        return None if number is None else self.concept(number)

    def by_code(self, code: str) -> Concept | None:
        """Return the concept with a code of any system."""
        number = self._by_code.get(code.upper())
        return None if number is None else self.concept(number)

    def synonyms(self, name: str) -> list[str]:
        """Return the other names of the concept of a name, the preferred name first; none if the name is unknown."""
        concept = self.find(name)
        return [other for other in concept.names if plain_key(other) != plain_key(name)] if concept else []

    @renamed_arguments(typed="prefix", limit="k")
    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        """Return completions of a prefix, the best first: one name for each concept.

        Names that begin with the prefix precede names in which a later word begins with it. If there is neither, one
        typing error in the prefix is corrected: a letter that is wrong, missing, added or exchanged with the next.
        Among equals, short names of concepts with codes of many systems come first.

        >>> [(s.name, s.concept.name) for s in Vocabulary.load().suggest("hart att")]
        [('heart attack', 'myocardial infarction')]
        """
        return self._completion.suggest(prefix, k)

    @cached_property
    def _abbreviations(self) -> Mapping[str, int]:
        """Map abbreviations in lower case to the numbers of their concepts."""
        return {name.lower(): number for name, number in self.by_key.items() if not name.islower()}

    @cached_property
    def _completion(self) -> Completion:
        return Completion(self._names(), self.concept, lambda name: self.by_key.get(key(name)))

    def _names(self) -> Iterator[tuple[str, int]]:
        """Yield all names with the numbers of their concepts; parsing all rows into concepts would take a second."""
        for number, row in enumerate(self._rows):
            if isinstance(row, str):
                _, _, name, synonyms, _ = row.split("\t", 4)
                yield name, number
                for synonym in _items(synonyms):
                    yield synonym, number
            else:
                for name in row.names:
                    yield name, number

    @cached_property
    def _by_code(self) -> Mapping[str, int]:
        return {code.upper(): i for i, c in enumerate(self) for code in (*c.codes[::-1], c.code)}


def _items(column: str) -> tuple[str, ...]:
    return tuple(column.split("|")) if column else ()


def _shipped_rows() -> list[str]:
    table = files("capr.annotate").joinpath("vocabulary.tsv.gz").read_bytes()
    return gzip.decompress(table).decode("utf-8").split("\n")[1:-1]


@cache
def _shipped() -> Vocabulary:
    return Vocabulary(_shipped_rows())
