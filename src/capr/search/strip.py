"""The scores of sentences where there is no discourse model: by the encoder of passages, or by words."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np

from capr.documents import Document, Span
from capr.index import Encoder, Index
from capr.index.onnx import Floats
from capr.search.curve import SentenceScore
from capr.search.parse import WORD, stopwords
from capr.segment import under

KEPT = 32  # documents whose sentence vectors are kept, so that the next query need not wait for them
Cut = Sequence[tuple[Span, str]]  # the sentences of a document, with the headings that they stand under
Asked = tuple[str, str, str]  # the entity, the aspect, and the whole query


class Strip:
    """Scores the sentences of documents, and remembers their vectors for a while."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Floats] = OrderedDict()
        self._changing = threading.Lock()

    def by_encoder(
        self, document: Document, sentences: Cut, encoder: Encoder, query: Asked, key: Hashable
    ) -> tuple[SentenceScore, ...]:
        """The cosine of each sentence under its heading with the entity, with the aspect, and with the whole query.

        The key is that of the document and the model, and of whoever may not learn that another has asked before.
        """
        vectors = self._vectors(document, sentences, encoder, key)
        nothing = np.zeros(len(sentences), np.float32)
        scores = [vectors @ encoder.query(part) if part and len(sentences) else nothing for part in query]
        rows = zip(sentences, *(some.tolist() for some in scores), strict=True)
        return tuple(SentenceScore(span, *(round(score, 4) for score in some)) for (span, _), *some in rows)

    def _vectors(self, document: Document, sentences: Cut, encoder: Encoder, key: Hashable) -> Floats:
        with self._changing:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        texts = [under(document[span], heading) for span, heading in sentences]
        vectors = encoder.passages(texts) if texts else np.zeros((0, encoder.identity.dimensions), np.float32)
        with self._changing:
            self._known[key] = vectors
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return vectors


def by_words(document: Document, sentences: Cut, index: Index, query: Asked) -> tuple[SentenceScore, ...]:
    """The share of the words of the entity, the aspect, and the whole query, that a sentence or its heading has."""
    wanted = [set(index.stems(_words(part))) for part in query]
    found = []
    for span, heading in sentences:
        have = set(index.stems(_words(f"{heading} {document[span]}")))
        shares = [round(len(words & have) / len(words), 4) if words else 0.0 for words in wanted]
        found.append(SentenceScore(span, *shares))
    return tuple(found)


def _words(text: str) -> list[str]:
    every = WORD.findall(text.lower())
    return [word for word in every if word not in stopwords()] or every
