"""Evidence: which words and sentences of a passage speak of the query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from capr.documents import Span
from capr.index import Entry, Index
from capr.search.hit import Sentence
from capr.search.parse import WORD, Parsed, stopwords

BEST = 3  # sentences that are named


class Evidence:
    """What to look for in the passages of one search."""

    def __init__(self, parsed: Parsed, index: Index) -> None:
        words = list(dict.fromkeys(w for c in parsed.clauses if c.occur != "not" for w in self._of(c.words, c.fields)))
        stems = index.stems(words)
        weights = index.rarity(stems)
        self._index = index
        self._known: dict[str, str] = {}  # the stems of words
        self.weights: Mapping[str, float] = {stem: w for stem, w in zip(stems, weights, strict=True) if stem and w}
        self.codes = {concept.code: self._weight(words) for words, concept in parsed.entities.items()}

    @staticmethod
    def _of(words: str, fields: Collection[str]) -> list[str]:
        return [] if "entities" in fields else [w for w in WORD.findall(words.lower()) if w not in stopwords()]

    def _weight(self, words: str) -> float:
        """What the words for an entity weigh, so that its other names weigh as much."""
        stems = self._index.stems(WORD.findall(words))
        return sum(self.weights.get(stem, 0.0) for stem in stems) or 1.0

    def of(self, entry: Entry) -> tuple[tuple[Span, ...], tuple[Sentence, ...]]:
        """The highlights of a passage in their order, and its sentences that have some, best first."""
        found: list[tuple[Span, str, float]] = []
        begin = entry.passage.span.begin
        wanted = self._wanted(entry.text)
        for word, stem in wanted.items():
            for place in _places(word, entry.text):
                found.append((Span(begin + place, begin + place + len(word)), stem, self.weights[stem]))
        for mention in entry.mentions:
            if mention.concept is not None and mention.concept.code in self.codes:
                found.append((mention.span, mention.concept.code, self.codes[mention.concept.code]))
        found.sort()
        return _merged([span for span, *_ in found]), self._sentences(entry.passage.sentences, found)

    def _wanted(self, text: str) -> dict[str, str]:
        """The words of a text that are words of the query, with their stems."""
        words = set(WORD.findall(text))
        new = [word for word in words if word not in self._known]
        self._known.update(zip(new, self._index.stems(new), strict=True))
        return {word: stem for word in words if (stem := self._known[word]) in self.weights}

    def _sentences(self, sentences: Sequence[Span], found: Sequence[tuple[Span, str, float]]) -> tuple[Sentence, ...]:
        total = sum(self.weights.values()) + sum(self.codes.values())
        scored = []
        for sentence in sentences:
            inside = {what: weight for span, what, weight in found if sentence.covers(span)}
            if inside:
                scored.append(Sentence(sentence, round(sum(inside.values()) / total, 4)))
        return tuple(sorted(scored, key=lambda s: (-s.score, s.span))[:BEST])


def _places(word: str, text: str) -> Iterator[int]:
    """Where a text has a word, as a whole: few are looked for, so this is faster than to go through all of them."""
    place = text.find(word)
    while place >= 0:
        whole = WORD.match(text, place)
        if whole and whole[0] == word and not (place and WORD.match(text, place - 1)):
            yield place
        place = text.find(word, place + len(word))


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans that overlap as one."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.begin < merged[-1].end:
            merged[-1] = Span(merged[-1].begin, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)
