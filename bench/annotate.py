"""Measure the speed of vocabulary, completion, gazetteer and annotator, compared with an Aho-Corasick automaton in C.

python bench/annotate.py [FILE...]    (notes; default: the samples)

Peer, if installed: pip install pyahocorasick
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import capr
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.mentions import annotator
from capr.annotate.vocabulary import Vocabulary

LOADING = """
import time, tracemalloc, capr.annotate.vocabulary as v
start = time.perf_counter(); v._shipped.__wrapped__(); seconds = time.perf_counter() - start
tracemalloc.start(); vocabulary = v.Vocabulary.load()
print(seconds, tracemalloc.get_traced_memory()[1] / 1e6)
"""
WORD = re.compile(r"\w")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="documents to annotate")
    files = parser.parse_args().files
    documents = list(capr.read(files)) if files else list(capr.samples.documents())
    text = "\n\n".join(document.text for document in documents)
    size = len(text.encode()) / 1e6
    runs = [json.loads("[" + fresh(LOADING).replace(" ", ",") + "]") for _ in range(5)]
    seconds, memory = min(run[0] for run in runs), max(run[1] for run in runs)
    print(f"vocabulary: loaded in {seconds:.2f} s, {memory:.0f} MB")
    completion()
    print(f"{len(documents):,} documents, {size:.1f} MB")
    gazetteer = Gazetteer(Vocabulary.load())
    list(gazetteer.find(text[:1000]))
    own_seconds = fastest(lambda: sum(1 for _ in gazetteer.find(text)))
    print(f"gazetteer: {size / own_seconds:.1f} MB/s")
    try:
        peer_seconds = fastest(peer(text))
        ratio = own_seconds / peer_seconds
        print(f"pyahocorasick: {size / peer_seconds:.1f} MB/s (the gazetteer takes {ratio:.1f} times as long)")
    except ImportError:
        print("pyahocorasick is not installed")
    for name, with_tagger in (("without the tagger", False), ("with the tagger", True)):
        sample = documents[:100] if with_tagger else documents
        finder = annotator(with_tagger)
        finder.annotate(sample[0])
        start = time.perf_counter()
        mentions = sum(len(finder.annotate(document)) for document in sample)
        rate = sum(len(document.text) for document in sample) / 1e3 / (time.perf_counter() - start)
        print(f"annotate {name}: {rate:,.0f} kB/s, {mentions:,} mentions in {len(sample):,} documents")


def fresh(code: str) -> str:
    """Run code in a new process, and return what it prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def fastest(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def completion() -> None:
    """Measure the completion of prefixes that users type: beginnings of names, a third of them without one letter."""
    vocabulary = Vocabulary.load()
    names = [name for concept in vocabulary for name in concept.names]
    rng = random.Random(1)
    vocabulary.suggest("warm up")
    times = []
    for i in range(3000):
        name = rng.choice(names)
        prefix = name[: rng.randint(1, len(name))]
        if i % 3 == 0 and len(prefix) > 4:
            position = rng.randrange(len(prefix))
            prefix = prefix[:position] + prefix[position + 1 :]
        start = time.perf_counter()
        vocabulary.suggest(prefix)
        times.append(1000 * (time.perf_counter() - start))
    times.sort()
    p50, p95, p99 = (times[int(len(times) * share)] for share in (0.5, 0.95, 0.99))
    print(f"suggest: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms, of {len(names):,} names")


def peer(text: str) -> Callable[[], int]:
    """Return a function that finds the same names with an automaton, longest matches of whole words only."""
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for concept in Vocabulary.load():
        for name in concept.names:
            automaton.add_word(name.lower(), (len(name), concept.code))
    automaton.make_automaton()

    def matches() -> Iterator[tuple[int, int]]:
        lowered = text.lower()
        for end, (length, _) in automaton.iter_long(lowered):
            begin = end + 1 - length
            before, after = lowered[begin - 1 : begin], lowered[end + 1 : end + 2]
            if not (before and WORD.match(before)) and not (after and WORD.match(after)):
                yield begin, end + 1

    return lambda: sum(1 for _ in matches())


if __name__ == "__main__":
    main()
