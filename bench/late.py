"""Measure late interaction: the time to re-rank 200 candidates, and what four bits for each value cost.

    python bench/late.py [--passages 100000] [--queries 200]

Vectors are synthetic: the word pieces of a passage are near to a few topics, as neighbouring words are. A library
stores the codes of all passages; a query reads the codes of 200 of them and compares them by MaxSim. The peers compare
vectors of 32 bits that are in memory already: NumPy, and maxsim-cpu if it is installed (pip install maxsim-cpu).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from corpus import say
from tables import table

from capr.documents import Document, Span
from capr.index import PIECES, PassageEntry, PassageKey, PreparedDocument
from capr.index.embedded.engine import EmbeddedIndex
from capr.runtime.identity import EncoderIdentity
from capr.runtime.late import RUNS, maxsim, pack, pool, unpack
from capr.runtime.onnx import Floats
from capr.search.reranking import COMPARED
from capr.segment import Passage

DIMENSIONS, QUERY_PIECES = 64, 32
TOGETHER = 20  # passages per document
BATCH = 2000  # passages per commit
WARM = 10  # queries before the measurement


def main() -> None:
    """Print the table of times and of what the codes cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    generator = np.random.default_rng(1)
    topics = unit(generator.normal(size=(500, DIMENSIONS)))
    with tempfile.TemporaryDirectory() as folder:
        index = EmbeddedIndex(Path(folder) / "library", create=True)
        keys = build(index, arguments.passages, generator, topics)
        size = index.disk()["documents"]
        say(f"{len(keys):,} passages, {size / 1e6:,.0f} MB")
        measure(index, keys, generator, topics, arguments.queries)
        index.close()


def unit(vectors: Floats) -> Floats:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def make_pieces(generator: np.random.Generator, topics: Floats, count: int) -> Floats:
    """Return vectors of neighbouring word pieces, which share a topic for some pieces."""
    chosen = np.repeat(generator.integers(len(topics), size=count // 4 + 1), 4)[:count]
    return unit(topics[chosen] + 0.08 * generator.normal(size=(count, DIMENSIONS)))


def build(index: EmbeddedIndex, passages: int, generator: np.random.Generator, topics: Floats) -> list[PassageKey]:
    """Store passages of 60 to 280 word pieces, and return their keys."""
    keys: list[PassageKey] = []
    with index.writing() as writer:
        writer.set_encoder(EncoderIdentity("synthetic", "0" * 32, DIMENSIONS, "/synthetic"), PIECES)
        writer.commit()
        for first in range(0, passages, TOGETHER):
            prepared = make_document(f"d{first}", generator, topics)
            keys += [PassageKey(prepared.document.id, place) for place in range(TOGETHER)]
            writer.add(prepared)
            if (first + TOGETHER) % BATCH == 0:
                writer.commit()
        writer.commit()
    return keys


def make_document(id: str, generator: np.random.Generator, topics: Floats) -> PreparedDocument:
    text = "Word. " * TOGETHER
    entries, codes = [], []
    for place in range(TOGETHER):
        span = Span(6 * place, 6 * place + 5)
        entries.append(PassageEntry(Passage(id, place, span, None, None, (span,), None, None), span.of(text), "", ()))
        codes.append(pack(pool(make_pieces(generator, topics, int(generator.integers(60, 280))))))
    digest = f"{id:>32}".encode()
    return PreparedDocument(Document(id, text, "", {}), digest, digest, entries, {PIECES: codes})


def peers() -> Iterator[tuple[str, Callable[[Floats, list[Floats]], object]]]:
    """Yield functions that score passages whose vectors have 32 bits."""
    yield "NumPy, 32 bits", lambda query, vectors: [float((query @ passage.T).max(1).mean()) for passage in vectors]
    try:
        import maxsim_cpu
    except ImportError:
        say("maxsim-cpu is not installed")
    else:
        yield "maxsim-cpu, 32 bits", maxsim_cpu.maxsim_scores_variable


def measure(
    index: EmbeddedIndex, keys: list[PassageKey], generator: np.random.Generator, topics: Floats, queries: int
) -> None:
    """Time the steps of a query and its peers in turns, and print the medians."""
    others = dict(peers())
    times: dict[str, list[float]] = {}

    def timed(name: str, task: Callable[[], object]) -> object:
        start = time.perf_counter()
        result = task()
        times.setdefault(name, []).append(1000 * (time.perf_counter() - start))
        return result

    for number in range(WARM + queries):
        if number == WARM:
            times.clear()
        query = make_pieces(generator, topics, QUERY_PIECES)
        chosen = [keys[i] for i in generator.choice(len(keys), COMPARED, replace=False)]
        codes = timed("read the codes from the library", lambda chosen=chosen: list(index.codes(chosen).values()))
        timed("compare them (MaxSim)", lambda query=query, codes=codes: maxsim(query, codes))
        vectors = [np.ascontiguousarray(unpack(code, DIMENSIONS)) for code in codes]
        for name, score in others.items():
            timed(name, lambda query=query, vectors=vectors, score=score: score(query, vectors))
    base = median(times["compare them (MaxSim)"])
    table(
        f"step, {COMPARED} passages|ms, median|of MaxSim",
        ([name, f"{median(values):.2f}", f"{median(values) / base:.2f}"] for name, values in times.items()),
    )
    print(
        f"A passage has at most {RUNS} vectors of {DIMENSIONS} dimensions, {len(pack(np.eye(RUNS, DIMENSIONS)))} bytes."
    )


if __name__ == "__main__":
    main()
