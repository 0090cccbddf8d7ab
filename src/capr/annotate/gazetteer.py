"""The gazetteer: finds the names of a vocabulary in a text, the longest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from capr.annotate.concept import Concept
from capr.annotate.names import WORD, abbreviation, plain
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Span

SPLIT = re.compile(f"({WORD.pattern})")
GAP = re.compile(r"[ \t\xa0]{0,8}(?:[-‐‑–/] ?)?(?:\r?\n[ \t]*)?|['’] |[.,]")  # between two words of a name
BORDER = re.compile(r"[,.;:]\s|\n\s*\n")  # what no name reaches across
BLOCK = 200_000  # characters that are looked through at once
MANY = 500_000  # words whose forms are remembered


class Found(NamedTuple):
    """A name in a text."""

    span: Span
    concept: Concept


class Form(NamedTuple):
    """A word as names are looked up, twice: without case and plural, and as an abbreviation (empty if it is none)."""

    plain: str
    abbreviation: str
    begins: bool  # whether a name begins with either


class Gazetteer:
    """Looks for all names of a vocabulary at once.

    >>> text = "Type 2 diabetes; had two heart-attacks. MI, but not mi."
    >>> [(found.span.of(text), found.concept.name) for found in Gazetteer(Vocabulary.load()).find(text)][1:]
    [('heart-attacks', 'myocardial infarction'), ('MI', 'myocardial infarction')]
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._forms: dict[str, Form] = {}

    @cached_property
    def _lengths(self) -> Mapping[str, int]:
        """By their first two words: how many words the names have, a bit for each number; 0 for a first word alone."""
        lengths: dict[str, int] = {}
        for name in self.vocabulary.by_key:
            words = name.split(" ", 2)
            lengths.setdefault(words[0], 0)
            if len(words) > 1:
                begin = f"{words[0]} {words[1]}"
                lengths[begin] = lengths.get(begin, 0) | 1 << (name.count(" ") + 1)
        return lengths

    def find(self, text: str, meant: Mapping[str, Concept | None] | None = None) -> Iterator[Found]:
        """The names in a text, in its order; no two overlap.

        Args:
            text: of any length.
            meant: what abbreviations mean in this text, whatever the vocabulary says; None for another thing.
        """
        begin = 0
        while begin < len(text):
            border = BORDER.search(text, begin + BLOCK)
            end = border.end() if border else len(text)
            for span, concept in self._find(text[begin:end], meant or {}):
                yield Found(Span(begin + span.begin, begin + span.end), concept)
            begin = end

    def _find(self, text: str, meant: Mapping[str, Concept | None]) -> Iterator[Found]:
        parts = SPLIT.split(text)  # gap, word, gap, word, ..., gap
        ends = list(accumulate(map(len, parts)))
        forms = [self._forms.get(word) or self._form(word) for word in parts[1::2]]
        free = 0  # the first word that no name has taken
        for i, form in enumerate(forms):
            if i < free or not (form.begins or meant):
                continue
            longest = self._longest(parts, forms, i) if form.begins else None
            if form.abbreviation in meant and (longest is None or longest[1] == i + 1):
                free = i + 1
                if (concept := meant[form.abbreviation]) is not None:
                    yield Found(Span(ends[2 * i], ends[2 * i + 1]), concept)
            elif longest is not None:
                number, free = longest
                yield Found(Span(ends[2 * i], ends[2 * free - 1]), self.vocabulary.concept(number))

    def _form(self, word: str) -> Form:
        if len(self._forms) > MANY:  # a corpus of ever new words does not fill the memory
            self._forms.clear()
        key, short = plain(word), abbreviation(word) if any(map(str.isupper, word)) else ""
        form = self._forms[word] = Form(key, short, key in self._lengths or short in self._lengths)
        return form

    def _longest(self, parts: list[str], forms: list[Form], i: int) -> tuple[int, int] | None:
        """The longest name that begins with the i-th word: its concept's number, and the word after it."""
        by_key = self.vocabulary.by_key
        for which in (0, 1):  # plain names, then abbreviations
            word = forms[i][which]
            if i + 1 < len(forms) and (counts := self._lengths.get(f"{word} {forms[i + 1][which]}")):
                for count in range(counts.bit_length() - 1, 1, -1):
                    if i + count > len(forms) or not counts >> count & 1:
                        continue
                    number = by_key.get(" ".join([str(form[which]) for form in forms[i : i + count]]))
                    if number is not None and _joined(parts[2 * i + 1 : 2 * (i + count)]):
                        return number, i + count
            if (number := by_key.get(str(word))) is not None:
                return number, i + 1
        return None


def _joined(parts: list[str]) -> bool:
    """Whether words and the gaps between them are written as one name.

    On the next line a name goes on in the same case: `Anxiety` over `Depression` are two items of a list.
    """
    for i in range(1, len(parts), 2):
        before, gap, after = parts[i - 1 : i + 2]
        if not GAP.fullmatch(gap):
            return False
        if "\n" in gap and after[0].isupper() and not (before.isupper() and after.isupper()):
            return False
    return True
