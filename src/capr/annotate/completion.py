"""Completion: the names that begin with the prefix that a user typed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate, chain
from typing import NamedTuple

from capr.annotate.concept import Concept
from capr.text.names import key

LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
MANY = 200  # candidates to rank


class Suggestion(NamedTuple):
    """A completion: a name that matches the prefix, and its concept."""

    name: str
    concept: Concept


class Completion:
    """All names of a vocabulary, sorted by their normalised spelling."""

    def __init__(
        self,
        names: Iterable[tuple[str, int]],
        concept: Callable[[int], Concept],
        concept_number: Callable[[str], int | None],
    ) -> None:
        """Sort the names.

        Args:
            names: each name with the number of its concept.
            concept: returns the concept with a number.
            concept_number: returns the number of the concept of a name, which a user's table may have redefined.
        """
        self._concept, self._concept_number = concept, concept_number
        self._entries = sorted((_normalised(name), number, name) for name, number in names)
        self._spellings = [spelling for spelling, _, _ in self._entries]
        self._popularity: dict[int, int] = {}
        self._short_prefixes: dict[str, list[int]] = {}

    def suggest(self, text: str, limit: int) -> list[Suggestion]:
        """Return the best matches for the text of a user, the best first, one for each concept."""
        prefix = _normalised(text).strip()
        if not prefix or limit < 1:
            return []
        matches = chain(self._starting_with(prefix), self._with_later_word(prefix))
        return self._suggestions(matches, limit) or self._suggestions(self._one_edit_from(prefix), limit)

    def _suggestions(self, entries: Iterable[int], limit: int) -> list[Suggestion]:
        suggestions: dict[int, Suggestion] = {}
        for i in entries:
            _, number, name = self._entries[i]
            if self._concept_number(name) in (None, number):
                suggestions.setdefault(number, Suggestion(name, self._concept(number)))
            if len(suggestions) == limit:
                break
        return list(suggestions.values())

    @cached_property
    def _later_words(self) -> list[str]:
        return sorted({word for spelling in self._spellings for word in spelling.split()[1:]})

    @cached_property
    def _text(self) -> str:
        return "\n".join(self._spellings)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(spelling) + 1 for spelling in self._spellings)]

    def _ranked(self, prefix: str, candidates: Iterable[int]) -> list[int]:
        """Return the best of the candidates, the best first."""
        return nsmallest(MANY, candidates, key=lambda i: (self._spellings[i] != prefix, self._rarity(i)))

    def _rarity(self, i: int) -> int:
        """Return a number that is low for short names of well-known concepts."""
        spelling, number, name = self._entries[i]
        popularity = self._popularity.get(number)
        concept = self._concept(number)
        if popularity is None:
            systems = {code.partition(":")[0] for code in (concept.code, *concept.codes)}
            popularity = self._popularity[number] = 3 * len(systems) + min(8, len(concept.synonyms))
        return len(spelling) - popularity - 6 * (name == concept.name)

    def _range(self, prefix: str) -> range:
        begin = bisect_left(self._spellings, prefix)
        return range(begin, bisect_left(self._spellings, prefix + "\U0010ffff", begin))

    def _starting_with(self, prefix: str) -> list[int]:
        if len(prefix) > 3:
            return self._ranked(prefix, self._range(prefix))
        matches = self._short_prefixes.get(prefix)
        if matches is None:
            matches = self._ranked(prefix, self._range(prefix))
            if len(matches) == MANY:  # ranking thousands of names is slow
                self._short_prefixes[prefix] = matches
        return matches

    def _begins_later_word(self, prefix: str) -> bool:
        """Whether a later word of any name begins with the prefix: a fast test before the slow search."""
        index = bisect_left(self._later_words, prefix)
        return index < len(self._later_words) and self._later_words[index].startswith(prefix)

    def _with_later_word(self, prefix: str) -> Iterator[int]:
        """Yield names in which a later word begins with the prefix.

        A generator: a caller with enough names does not start this search.
        """
        if len(prefix) < 3 or not self._begins_later_word(prefix.split()[0]):
            return
        matches: list[int] = []
        position = self._text.find(f" {prefix}")
        while position >= 0 and len(matches) < 10 * MANY:
            matches.append(bisect_left(self._line_starts, position) - 1)
            position = self._text.find(f" {prefix}", position + 1)
        yield from self._ranked(prefix, matches)

    def _one_edit_from(self, prefix: str) -> list[int]:
        """Return names that begin with the prefix after the correction of one typing error."""
        matches: set[int] = set()
        for i in range(len(prefix) if len(prefix) > 3 else 0):
            names = self._range(prefix[:i])  # the letters before the error are right
            if not names:
                break
            for spelling in _edits(prefix, i):
                begin = bisect_left(self._spellings, spelling, names.start, names.stop)
                if begin < names.stop and self._spellings[begin].startswith(spelling):
                    matches.update(self._range(spelling)[:MANY])
        return self._ranked(prefix, matches)


def _edits(word: str, i: int) -> Iterator[str]:
    """Yield all spellings that correct one typing error at the i-th letter."""
    yield word[:i] + word[i + 1 :]
    if i + 1 < len(word):
        yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    for letter in LETTERS:
        yield word[:i] + letter + word[i:]
        yield word[:i] + letter + word[i + 1 :]


def _normalised(name: str) -> str:
    """Return a name without capitals, hyphens, accents and 's, which users often leave out."""
    words = " ".join(name.lower().split()).replace("-", " ").replace("’", "'").replace("'s", "").replace("'", "")
    return words if words.isascii() else key(words) or words
