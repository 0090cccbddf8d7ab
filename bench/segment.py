"""Throughput of each way of cutting, in megabytes of text per second on one core, best of five.

    python bench/segment.py [../shared/data]

On the sample corpus, and on MTSamples (notes) and MedQuAD (articles) where the data folder is given.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import capr
from capr.documents import Document
from capr.segment import passages, sections, sentences, structure, uniform

WAYS: dict[str, Callable[[Document], object]] = {
    "section": sections,
    "passage": passages,
    "sentence": lambda document: sentences(document.text),
    "uniform": lambda document: uniform(document.text, 1000),
    "structure flags": lambda document: structure(document.text, sentences(document.text)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    arguments = parser.parse_args()
    print(f"{'corpus':<12}{'documents':>10}{'MB':>7}  " + "".join(f"{way:>17}" for way in WAYS))
    for name, documents in corpora(arguments.data):
        size = sum(len(document.text.encode()) for document in documents) / 1e6
        speeds = [size / min(timed(way, documents) for _ in range(5)) for way in WAYS.values()]
        print(
            f"{name:<12}{len(documents):>10,}{size:>7.1f}  " + "".join(f"{speed:>17.1f}" for speed in speeds),
            flush=True,
        )


def timed(cut: Callable[[Document], object], documents: list[Document]) -> float:
    started = time.process_time()
    for document in documents:
        cut(document)
    return time.process_time() - started


def corpora(data: Path | None) -> Iterator[tuple[str, list[Document]]]:
    yield "samples", capr.samples.documents()
    if data is not None:
        yield "mtsamples", list(capr.read(data / "mtsamples"))
        yield "medquad", list(capr.read(data / "medquad"))


if __name__ == "__main__":
    main()
