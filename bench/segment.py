"""Measure the throughput of each segmentation, in megabytes of text per second on one core, best of five.

    python bench/segment.py [../shared/data]

The texts are the sample corpus and, if the data folder is named, MTSamples (notes) and MedQuAD (articles).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import capr
from capr.documents import Document
from capr.segment import passages, sections, sentences, structure, uniform

SEGMENTATIONS: dict[str, Callable[[Document], object]] = {
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
    print(
        f"{'corpus':<12}{'documents':>10}{'MB':>7}  " + "".join(f"{segmentation:>17}" for segmentation in SEGMENTATIONS)
    )
    for name, documents in corpora(arguments.data):
        size = sum(len(document.text.encode()) for document in documents) / 1e6
        speeds = [
            size / min(seconds_of(segmentation, documents) for _ in range(5)) for segmentation in SEGMENTATIONS.values()
        ]
        print(
            f"{name:<12}{len(documents):>10,}{size:>7.1f}  " + "".join(f"{speed:>17.1f}" for speed in speeds),
            flush=True,
        )


def seconds_of(cut: Callable[[Document], object], documents: list[Document]) -> float:
    start = time.process_time()
    for document in documents:
        cut(document)
    return time.process_time() - start


def corpora(data: Path | None) -> Iterator[tuple[str, list[Document]]]:
    yield "samples", capr.samples.documents()
    if data is not None:
        yield "mtsamples", list(capr.read(data / "mtsamples"))
        yield "medquad", list(capr.read(data / "medquad"))


if __name__ == "__main__":
    main()
