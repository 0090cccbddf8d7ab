"""Trains subword vectors: skip-gram with negative sampling over words and their character n-grams.

Only training needs gensim; reading the vectors does not. gensim is maintained and has wheels. The repository of
fastText is archived and its wheel is unofficial, and floret has no release for new Pythons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from capr.documents import CaprError
from capr.runtime.subwords import Subwords, words_of

GRAMS = (3, 6)
BUCKETS = 100_000
FEWEST = 50  # words to train on


def train_words(
    texts: Iterable[str],
    dimensions: int = 300,
    epochs: int = 5,
    seed: int = 1,
    least: int = 2,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Subwords:
    """Train and return word vectors. The same texts and seed give the same vectors.

    Args:
        texts: sentences.
        dimensions: dimensions of the vectors.
        epochs: number of passes over the texts.
        seed: the seed of all random choices.
        least: minimum count of a word that gets its own vector. The vectors of other words come from their n-grams.
        progress: a function that is called after each epoch, with the number of finished epochs and of all epochs.

    Raises:
        CaprError: gensim is not installed, or there are too few words.
    """
    try:
        from gensim.models import FastText
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError as error:
        raise CaprError(f"training word vectors needs {error.name}. Fix: pip install 'capr[train]'.") from error

    class EpochProgress(CallbackAny2Vec):  # type: ignore[misc]
        done = 0

        def on_epoch_end(self, model: object) -> None:
            self.done += 1
            progress(self.done, epochs)

    lines = [words for words in map(words_of, texts) if words]
    if sum(map(len, lines)) < FEWEST:
        fact = f"there are {sum(map(len, lines))} words to learn vectors from"
        raise CaprError(f"{fact}, which is too few. Fix: name more documents.")
    model = FastText(
        vector_size=dimensions,
        window=5,
        min_count=least,
        sg=1,
        negative=5,
        sample=1e-4,
        workers=1,
        seed=seed,
        min_n=GRAMS[0],
        max_n=GRAMS[1],
        bucket=BUCKETS,
    )
    model.build_vocab(lines)
    if not len(model.wv):
        raise CaprError(f"no word occurs {least} times. Fix: name more documents.")
    model.train(lines, total_examples=len(lines), epochs=epochs, callbacks=[EpochProgress()])
    words = list(model.wv.index_to_key)
    counts = [model.wv.get_vecattr(word, "count") for word in words]
    # Round as the file does, so that training and search use the same vectors.
    vectors, buckets = (np.asarray(table, np.float16) for table in (model.wv.vectors, model.wv.vectors_ngrams))
    return Subwords(words, vectors.astype(np.float32), counts, buckets.astype(np.float32), GRAMS)
