"""The scores of sentences without a discourse model: by the encoder of passages, or by words."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np

from capr.documents import Document, Span
from capr.index import Index
from capr.runtime.encoder import Encoder
from capr.runtime.onnx import Floats
from capr.search.curve import SentenceScore
from capr.segment import with_labels
from capr.text.stopwords import stopwords
from capr.text.words import WORD

CACHED = 32  # documents whose sentence vectors stay in memory, so that the next query need not wait for them
HeadedSentences = Sequence[tuple[Span, str]]  # the sentences of a document, each with its heading
QueryParts = tuple[str, str, str]  # the entity, the aspect, and the whole query


class SentenceScorer:
    """Scores the sentences of documents, and caches their vectors."""

    def __init__(self) -> None:
        self._cache: OrderedDict[Hashable, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def by_encoder(
        self, document: Document, sentences: HeadedSentences, encoder: Encoder, query: QueryParts, key: Hashable
    ) -> tuple[SentenceScore, ...]:
        """Return the cosines of each sentence, under its heading, with the entity, the aspect and the whole query.

        The key of the cached vectors has to cover the document, the model, and the restriction of the caller: otherwise
        the response time would reveal that another user scored the same document.
        """
        vectors = self._vectors(document, sentences, encoder, key)
        zeros = np.zeros(len(sentences), np.float32)
        columns = [vectors @ encoder.query(part) if part and len(sentences) else zeros for part in query]
        rows = zip(sentences, *(column.tolist() for column in columns), strict=True)
        return tuple(SentenceScore(span, *(round(score, 4) for score in scores)) for (span, _), *scores in rows)

    def _vectors(self, document: Document, sentences: HeadedSentences, encoder: Encoder, key: Hashable) -> Floats:
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        texts = [with_labels(document[span], heading) for span, heading in sentences]
        vectors = encoder.passages(texts) if texts else np.zeros((0, encoder.identity.dimensions), np.float32)
        with self._lock:
            self._cache[key] = vectors
            while len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return vectors


def by_words(
    document: Document, sentences: HeadedSentences, index: Index, query: QueryParts
) -> tuple[SentenceScore, ...]:
    """Score each sentence by the shares of the words of entity, aspect and query that it or its heading contains."""
    query_stems = [set(index.stems(_words(part))) for part in query]
    scores = []
    for span, heading in sentences:
        sentence_stems = set(index.stems(_words(f"{heading} {document[span]}")))
        shares = [round(len(stems & sentence_stems) / len(stems), 4) if stems else 0.0 for stems in query_stems]
        scores.append(SentenceScore(span, *shares))
    return tuple(scores)


def _words(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    return [word for word in words if word not in stopwords()] or words
