"""Measure the speed and memory of making training examples: `python bench/supervise.py [--passages N ...]`.

The benchmark makes up the articles.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate, islice

from capr.annotate.mentions import annotator
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Annotation, Document, Span
from capr.supervise import Pool, examples
from capr.supervise.labels import Labeller, labelled

HEADINGS = ("Symptoms", "Causes", "Diagnosis", "Treatment", "Prognosis")


def articles(count: int) -> Iterator[Document]:
    """Yield articles with five sections of about a hundred words each, whose frequencies follow Zipf's law."""
    rng = random.Random(1)
    words = [f"{rng.choice('bcdfglmnprst')}{rng.choice('aeiou')}{number:x}" for number in range(50_000)]
    names = [concept.name for concept in islice(Vocabulary.load(), 20_000)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))
    for number in range(count):
        title = rng.choice(names)
        text, annotations = "", []
        for heading in HEADINGS:
            begin = len(text)
            body = " ".join(rng.choices(words, cum_weights=weights, k=100))
            text += f"{heading}\n{title} {body}.\n\n"
            annotations.append(Annotation("section", Span(begin, len(text)), {"heading": heading}))
        yield Document(f"a{number}", text, title, {}, tuple(annotations))


def measure(passages: int) -> None:
    import resource

    start = time.perf_counter()
    labeller = Labeller(annotator(with_tagger=False))
    with Pool(labelled(articles(passages // len(HEADINGS)), labeller)) as pool:
        fill_seconds = time.perf_counter() - start
        start = time.perf_counter()
        count = sum(1 for _ in islice(examples(pool), 5000))
        rate = count / (time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps([len(pool), len(pool) / fill_seconds, rate, peak]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one)
        return
    print(f"{'passages':>10}{'filled/s':>10}{'drawn/s':>10}{'peak MB':>10}")
    for passages in arguments.passages:
        command = [sys.executable, __file__, "--one", str(passages)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        print("".join(f"{value:>10,.0f}" for value in json.loads(printed)), flush=True)


if __name__ == "__main__":
    main()
