"""Fixtures of the tests of discourse models."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from capr.runtime.subwords import words_of

sys.path.insert(0, str(Path(__file__).parent))

from articles import DISEASES, article


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Articles, word vectors, and the names of two diseases that are held out."""
    folder = tmp_path_factory.mktemp("world")
    articles = [article(disease, number) for number in range(4) for disease in DISEASES]
    (folder / "articles.jsonl").write_text("".join(json.dumps(record) + "\n" for record in articles))
    texts = [part["text"] for record in articles for part in record["sections"]] + list(DISEASES)
    words = sorted(
        {word for text in texts for word in words_of(text)} | {"symptoms", "treatment", "prognosis", "signs"}
    )
    vectors = np.random.default_rng(0).normal(size=(len(words), 24))
    rows = (f"{word} {' '.join(f'{value:.4f}' for value in row)}\n" for word, row in zip(words, vectors, strict=True))
    (folder / "glove.txt").write_text("".join(rows))
    (folder / "without.txt").write_text("Gout\nLupus\n")
    return folder
