"""Completion: which names somebody may mean who has typed the beginning of one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate, chain
from typing import NamedTuple

from capr.annotate.concept import Concept
from capr.annotate.names import key

LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
MANY = 200  # completions that are worth a look


class Suggestion(NamedTuple):
    """A completion: the name that fits what was typed, and what it means."""

    name: str
    concept: Concept


class Completion:
    """All names of a vocabulary, sorted as they are typed."""

    def __init__(
        self,
        names: Iterable[tuple[str, int]],
        concept: Callable[[int], Concept],
        means: Callable[[str], int | None],
    ) -> None:
        """Sorts the names.

        Args:
            names: each with the number of its concept.
            concept: the concept of a number.
            means: the number that a name means; another one where a user's table gives it another meaning.
        """
        self._concept, self._means = concept, means
        self._entries = sorted((_typed(name), number, name) for name, number in names)
        self._typable = [typed for typed, _, _ in self._entries]
        self._known: dict[int, int] = {}
        self._short: dict[str, list[int]] = {}

    def suggest(self, typed: str, limit: int) -> list[Suggestion]:
        """The names that fit, best first, one for each concept."""
        wanted = _typed(typed).strip()
        if not wanted or limit < 1:
            return []
        found = self._suggestions(chain(self._starting(wanted), self._containing(wanted)), limit)
        return found or self._suggestions(self._mistyped(wanted), limit)

    def _suggestions(self, entries: Iterable[int], limit: int) -> list[Suggestion]:
        found: dict[int, Suggestion] = {}
        for i in entries:
            _, number, name = self._entries[i]
            if self._means(name) in (None, number):
                found.setdefault(number, Suggestion(name, self._concept(number)))
            if len(found) == limit:
                break
        return list(found.values())

    @cached_property
    def _later_words(self) -> list[str]:
        return sorted({word for typed in self._typable for word in typed.split()[1:]})

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
        concept = self._concept(number)
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

    def _is_later_word(self, start: str) -> bool:
        """Whether any name has a later word that begins so; telling that is much faster than looking through all."""
        at = bisect_left(self._later_words, start)
        return at < len(self._later_words) and self._later_words[at].startswith(start)

    def _containing(self, wanted: str) -> Iterator[int]:
        """Names of which a later word begins with what was typed; a generator, so that it is not looked for in vain."""
        if len(wanted) < 3 or not self._is_later_word(wanted.split()[0]):
            return
        found: list[int] = []
        position = self._text.find(f" {wanted}")
        while position >= 0 and len(found) < 10 * MANY:
            found.append(bisect_left(self._line_starts, position) - 1)
            position = self._text.find(f" {wanted}", position + 1)
        yield from self._ranked(wanted, found)

    def _mistyped(self, wanted: str) -> list[int]:
        found: set[int] = set()
        for i in range(len(wanted) if len(wanted) > 3 else 0):
            right = self._range(wanted[:i])  # the mistake is at the i-th letter, so all before is right
            if not right:
                break
            for spelling in _edits(wanted, i):
                begin = bisect_left(self._typable, spelling, right.start, right.stop)
                if begin < right.stop and self._typable[begin].startswith(spelling):
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
