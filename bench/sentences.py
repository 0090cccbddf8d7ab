"""Measure the F1 of sentence ends on the hand-marked notes, and the speed, of capr and of other splitters.

    python bench/sentences.py [--split dev|test]

The benchmark skips splitters that are not installed: pip install pysbd syntok blingfire spacy PyRuSH (PyRuSH needs
spaCy < 3.8, so install it in another environment). It measures speed on the sample corpus, best of three.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from capr import samples
from capr.segment import sentences

Splitter = Callable[[str], list[int]]  # from a text to the ends of its sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    split = parser.parse_args().split
    marked = load_marked()
    gold = list(marked.marked_texts(split))
    corpus = [document.text for document in samples.documents()]
    size = sum(len(text.encode()) for text in corpus) / 1e6
    print(f"{sum(len(ends) for _, _, ends in gold)} sentence ends in {len(gold)} notes ({split})")
    print(f"{'splitter':<22}{'precision':>10}{'recall':>9}{'F1':>8}{'MB/s':>9}")
    for name, split_text in splitters():
        right = predicted = expected = 0
        for _, text, gold_ends in gold:
            ends = {trimmed_end(text, end) for end in split_text(text)} - {0}
            right += len(ends & gold_ends)
            predicted += len(ends)
            expected += len(gold_ends)
        seconds = min(seconds_of(split_text, corpus) for _ in range(3))
        f1 = marked.f1(right, predicted, expected)
        print(
            f"{name:<22}{right / predicted:>10.3f}{right / expected:>9.3f}{f1:>8.3f}{size / seconds:>9.2f}",
            flush=True,
        )


def seconds_of(split_text: Splitter, corpus: list[str]) -> float:
    start = time.perf_counter()
    for text in corpus:
        split_text(text)
    return time.perf_counter() - start


def trimmed_end(text: str, end: int) -> int:
    return len(text[:end].rstrip())


def splitters() -> Iterator[tuple[str, Splitter]]:
    yield "capr", lambda text: [span.end for span in sentences(text)]
    yield "every line", lambda text: ends_of(text, text.splitlines(keepends=True))
    if installed("pysbd"):
        import pysbd

        segmenter = pysbd.Segmenter(language="en", clean=False, char_span=True)
        yield "pysbd", lambda text: [span.end for span in segmenter.segment(text)]
    if installed("PyRuSH"):
        import PyRuSH

        rules = next(Path(PyRuSH.__file__).parent.parent.rglob("rush_rules.tsv"), None)
        if rules is not None:
            rush = PyRuSH.RuSH(str(rules))
            yield "PyRuSH", lambda text: [span.end for span in rush.segToSentenceSpans(text)]
    if installed("spacy"):
        import spacy

        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        yield "spaCy sentencizer", lambda text: [sentence.end_char for sentence in nlp(text).sents]
    if installed("syntok"):
        from syntok import segmenter as syntok

        yield (
            "syntok",
            lambda text: [
                sentence[-1].offset + len(sentence[-1].value)
                for paragraph in syntok.analyze(text)
                for sentence in paragraph
            ],
        )
    if installed("blingfire"):
        import blingfire

        yield (
            "blingfire",
            lambda text: [end for _, end in blingfire.text_to_sentences_and_offsets(text)[1]],
        )


def ends_of(text: str, lines: list[str]) -> list[int]:
    ends, position = [], 0
    for line in lines:
        position += len(line)
        ends.append(position)
    return ends


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def load_marked():
    """Import tests/segment/marked.py, which reads the marked notes."""
    path = Path(__file__).parents[1] / "tests" / "segment" / "marked.py"
    spec = importlib.util.spec_from_file_location("marked", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
