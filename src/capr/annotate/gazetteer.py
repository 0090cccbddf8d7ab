"""The gazetteer: find the names of a vocabulary in a text; the longest name wins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from capr.annotate.concept import Concept
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Span
from capr.text.names import WORD, abbreviation, plain

SPLIT = re.compile(f"({WORD.pattern})")
GAP = re.compile(r"[ \t\xa0]{0,8}(?:[-‐‑–/] ?)?(?:\r?\n[ \t]*)?|['’] |[.,]")  # between two words of a name
BORDER = re.compile(r"[,.;:]\s|\n\s*\n")  # no name crosses it
BLOCK = 200_000  # characters to search at once
MANY = 500_000  # words in the cache of forms


class NameMatch(NamedTuple):
    """The span of a name in a text, and its concept."""

    span: Span
    concept: Concept


class Form(NamedTuple):
    """The two keys of a word: without case and plural, and as an abbreviation (empty if the word is none)."""

    plain: str
    abbreviation: str
    begins: bool  # whether a name begins with one of the keys


class Gazetteer:
    """Finds all names of a vocabulary in one pass.

    >>> text = "Type 2 diabetes; had two heart-attacks. MI, but not mi."
    >>> [(name.span.of(text), name.concept.name) for name in Gazetteer(Vocabulary.load()).find(text)][1:]
    [('heart-attacks', 'myocardial infarction'), ('MI', 'myocardial infarction')]
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._forms: dict[str, Form] = {}

    @cached_property
    def _lengths(self) -> Mapping[str, int]:
        """Map the first two words of names to the numbers of words of the names, as bits; a first word alone to 0."""
        lengths: dict[str, int] = {}
        for name in self.vocabulary.by_key:
            words = name.split(" ", 2)
            lengths.setdefault(words[0], 0)
            if len(words) > 1:
                begin = f"{words[0]} {words[1]}"
                lengths[begin] = lengths.get(begin, 0) | 1 << (name.count(" ") + 1)
        return lengths

    def find(self, text: str, abbreviations: Mapping[str, Concept | None] | None = None) -> Iterator[NameMatch]:
        """Yield the names in a text, in the order of the text, without overlaps.

        Args:
            text: a text of any length.
            abbreviations: concepts of abbreviations that the text defines, which override the vocabulary; None for an
                abbreviation of something else.
        """
        begin = 0
        while begin < len(text):
            border = BORDER.search(text, begin + BLOCK)
            end = border.end() if border else len(text)
            for span, concept in self._find(text[begin:end], abbreviations or {}):
                yield NameMatch(Span(begin + span.begin, begin + span.end), concept)
            begin = end

    def _find(self, text: str, abbreviations: Mapping[str, Concept | None]) -> Iterator[NameMatch]:
        parts = SPLIT.split(text)  # gap, word, gap, word, ..., gap
        ends = list(accumulate(map(len, parts)))
        forms = [self._forms.get(word) or self._form(word) for word in parts[1::2]]
        free = 0  # the first word after the last name
        for i, form in enumerate(forms):
            if i < free or not (form.begins or abbreviations):
                continue
            longest = self._longest(parts, forms, i) if form.begins else None
            if form.abbreviation in abbreviations and (longest is None or longest[1] == i + 1):
                free = i + 1
                if (concept := abbreviations[form.abbreviation]) is not None:
                    yield NameMatch(Span(ends[2 * i], ends[2 * i + 1]), concept)
            elif longest is not None:
                number, free = longest
                yield NameMatch(Span(ends[2 * i], ends[2 * free - 1]), self.vocabulary.concept(number))

    def _form(self, word: str) -> Form:
        if len(self._forms) > MANY:  # bound the memory for corpora with many different words
            self._forms.clear()
        key, short = plain(word), abbreviation(word) if any(map(str.isupper, word)) else ""
        form = self._forms[word] = Form(key, short, key in self._lengths or short in self._lengths)
        return form

    def _longest(self, parts: list[str], forms: list[Form], i: int) -> tuple[int, int] | None:
        """Return the longest name that begins with the i-th word: the number of its concept, and the word after it."""
        by_key = self.vocabulary.by_key
        for key_index in (0, 1):  # plain keys, then abbreviations
            word = forms[i][key_index]
            if i + 1 < len(forms) and (counts := self._lengths.get(f"{word} {forms[i + 1][key_index]}")):
                for count in range(counts.bit_length() - 1, 1, -1):
                    if i + count > len(forms) or not counts >> count & 1:
                        continue
                    number = by_key.get(" ".join([str(form[key_index]) for form in forms[i : i + count]]))
                    if number is not None and _joined(parts[2 * i + 1 : 2 * (i + count)]):
                        return number, i + count
            if (number := by_key.get(str(word))) is not None:
                return number, i + 1
        return None


def _joined(parts: list[str]) -> bool:
    """Whether words and the gaps between them are one name.

    A word with a capital begins a new name on a new line, except in text in capitals: `Anxiety` above `Depression` are
    two items of a list.
    """
    for i in range(1, len(parts), 2):
        before, gap, after = parts[i - 1 : i + 2]
        if not GAP.fullmatch(gap):
            return False
        if "\n" in gap and after[0].isupper() and not (before.isupper() and after.isupper()):
            return False
    return True
