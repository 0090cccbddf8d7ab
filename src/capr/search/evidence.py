"""Evidence: the words and sentences of a passage that show why it is a hit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from capr.documents import Span
from capr.index import Index, PassageEntry
from capr.search.hit import Sentence
from capr.search.parse import ParsedQuery
from capr.text.stopwords import stopwords
from capr.text.words import WORD

BEST = 3  # maximum sentences of a hit

Match = tuple[Span, str, float]  # the span of a word or entity, its stem or code, and its weight


class Evidence:
    """Finds the evidence for one query in passages.

    Attributes:
        weights: the weight of each stem of the query.
        codes: the weight of each entity of the query, by its code.
    """

    def __init__(self, parsed: ParsedQuery, index: Index) -> None:
        clauses = [clause for clause in parsed.clauses if clause.occur != "not"]
        words = list(dict.fromkeys(word for c in clauses for word in self._words(c.words, c.fields)))
        stems = index.stems(words)
        weights = index.rarity(stems)
        self._index = index
        self._stems: dict[str, str] = {}  # of the words of passages
        self.weights: Mapping[str, float] = {stem: w for stem, w in zip(stems, weights, strict=True) if stem and w}
        self.codes = {concept.code: self._weight(words) for words, concept in parsed.entities.items()}

    @staticmethod
    def _words(words: str, fields: Collection[str]) -> list[str]:
        """Return the words of a clause without stop words; none for a clause on entities."""
        return [] if "entities" in fields else [w for w in WORD.findall(words.lower()) if w not in stopwords()]

    def _weight(self, words: str) -> float:
        """Return the weight of the words that name an entity, which its other names get, too."""
        stems = self._index.stems(WORD.findall(words))
        return sum(self.weights.get(stem, 0.0) for stem in stems) or 1.0

    def of(self, entry: PassageEntry) -> tuple[tuple[Span, ...], tuple[Sentence, ...]]:
        """Return the highlights of a passage in the order of the text, and its sentences with any, best first."""
        matches: list[Match] = []
        begin = entry.passage.span.begin
        for word, stem in self._query_words(entry.text).items():
            for offset in _offsets(word, entry.text):
                matches.append((Span(begin + offset, begin + offset + len(word)), stem, self.weights[stem]))
        for mention in entry.mentions:
            if mention.concept is not None and mention.concept.code in self.codes:
                matches.append((mention.span, mention.concept.code, self.codes[mention.concept.code]))
        matches.sort()
        return _merged([span for span, *_ in matches]), self._sentences(entry.passage.sentences, matches)

    def _query_words(self, text: str) -> dict[str, str]:
        """Return the words of a text whose stems are in the query, with their stems."""
        words = set(WORD.findall(text))
        new = [word for word in words if word not in self._stems]
        self._stems.update(zip(new, self._index.stems(new), strict=True))
        return {word: stem for word in words if (stem := self._stems[word]) in self.weights}

    def _sentences(self, sentences: Sequence[Span], matches: Sequence[Match]) -> tuple[Sentence, ...]:
        total = sum(self.weights.values()) + sum(self.codes.values())
        scored = []
        for sentence in sentences:
            weights = {key: weight for span, key, weight in matches if sentence.covers(span)}
            if weights:
                scored.append(Sentence(sentence, round(sum(weights.values()) / total, 4)))
        return tuple(sorted(scored, key=lambda s: (-s.score, s.span))[:BEST])


def _offsets(word: str, text: str) -> Iterator[int]:
    """Yield the offsets of a whole word in a text. For few words, this is faster than a scan over all words."""
    offset = text.find(word)
    while offset >= 0:
        whole = WORD.match(text, offset)
        if whole and whole[0] == word and not (offset and WORD.match(text, offset - 1)):
            yield offset
        offset = text.find(word, offset + len(word))


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Merge spans that overlap; the spans are sorted."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.begin < merged[-1].end:
            merged[-1] = Span(merged[-1].begin, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)
