"""Trains subword vectors: skip-gram with negative sampling over words and their character n-grams.

By gensim, the one library of several that is maintained and installs as a wheel (fastText's own repository is archived,
and its wheel is nobody's; floret has no release for new Pythons). What is trained is read without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from capr.documents import CaprError
from capr.index.subwords import Subwords, words_of

GRAMS = (3, 6)
BUCKETS = 100_000
FEWEST = 50  # words to learn from


def train_words(
    texts: Iterable[str], dimensions: int = 300, epochs: int = 5, seed: int = 1, least: int = 2,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Subwords:  # fmt: skip
    """The vectors of the words of some texts; the same texts and seed give the same.

    Args:
        texts: sentences.
        dimensions: of the vectors.
        epochs: how often they are read.
        seed: of all that is drawn.
        least: how often a word has to occur to get a vector of its own; others are made of their n-grams.
        told: how many epochs of how many are done.

    Raises:
        CaprError: gensim is not installed, or there are too few words.
    """
    try:
        from gensim.models import FastText
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError as error:
        raise CaprError(f"training word vectors needs {error.name}. Fix: pip install 'capr[train]'.") from error

    class Told(CallbackAny2Vec):  # type: ignore[misc]
        done = 0

        def on_epoch_end(self, model: object) -> None:
            self.done += 1
            told(self.done, epochs)

    lines = [words for words in map(words_of, texts) if words]
    if sum(map(len, lines)) < FEWEST:
        fact = f"there are {sum(map(len, lines))} words to learn vectors from"
        raise CaprError(f"{fact}, which is too few. Fix: name more documents.")
    model = FastText(
        vector_size=dimensions, window=5, min_count=least, sg=1, negative=5, sample=1e-4, workers=1, seed=seed,
        min_n=GRAMS[0], max_n=GRAMS[1], bucket=BUCKETS,
    )  # fmt: skip
    model.build_vocab(lines)
    if not len(model.wv):
        raise CaprError(f"no word occurs {least} times. Fix: name more documents.")
    model.train(lines, total_examples=len(lines), epochs=epochs, callbacks=[Told()])
    words = list(model.wv.index_to_key)
    counts = [model.wv.get_vecattr(word, "count") for word in words]
    # Rounded as they will be kept, so that training and search see the same.
    vectors, buckets = (np.asarray(table, np.float16) for table in (model.wv.vectors, model.wv.vectors_ngrams))
    return Subwords(words, vectors.astype(np.float32), counts, buckets.astype(np.float32), GRAMS)
