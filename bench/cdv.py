"""Measure search by discourse vectors of sentences: time, recall and bytes, compared with nearest-sentence search.

python bench/cdv.py [--sentences 1000000] [--half 192] [--queries 300] [--work FOLDER]

Texts and vectors are synthetic. Every document has an entity, and every passage one of 400 aspects; some aspects are
far more frequent than others. The vectors of entities and of aspects lie in groups, and noise is added for every
passage and every sentence. A query is the entity and the aspect of a passage, with noise. The true score of a passage
is the mean of the products of its sentences with the query in 32 bits.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from corpus import say
from numpy.typing import NDArray
from tables import table

from capr.annotate import Query
from capr.documents import Document, Span
from capr.index import SENTENCES, Filters, PassageEntry, PreparedDocument, SpanVectors
from capr.index.embedded.engine import EmbeddedIndex
from capr.index.embedded.sentences import pack, unpack
from capr.runtime.identity import EncoderIdentity
from capr.search import Library
from capr.segment import Passage

TOGETHER = 10  # passages per document
ASPECTS = 400
WARDS = 10
BATCH = 2000  # passages per commit
K = 10
WARM = 20  # queries before the measurement
CANDIDATES = (1000, 4000, 10_000)  # numbers of nearest sentences for the comparison
Floats = NDArray[np.float32]


def normalise(vectors: Floats) -> Floats:
    scaled: Floats = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
    return scaled


def join(entity: Floats, aspect: Floats) -> Floats:
    return np.concatenate([normalise(entity), normalise(aspect)], axis=-1) / np.float32(np.sqrt(2))


class World:
    """Synthetic documents: the entity, the aspect and the number of sentences of each passage."""

    def __init__(self, sentences: int, half: int) -> None:
        self.random, self.half = np.random.default_rng(1), half
        counts = np.minimum(self.random.geometric(0.1, sentences // 9 + 100), 60)
        passages = int(np.searchsorted(np.cumsum(counts), sentences)) // TOGETHER * TOGETHER
        self.counts = counts[:passages]
        self.entities = self._draw_vectors(max(10, passages // TOGETHER * 2 // 3), 50)
        self.aspects = self._draw_vectors(ASPECTS, 20)
        documents = self.random.integers(0, len(self.entities), passages // TOGETHER)
        self.entity = np.repeat(documents, TOGETHER)
        self.aspect = (ASPECTS * self.random.random(passages) ** 2.5).astype(int)

    def _draw_vectors(self, count: int, groups: int) -> Floats:
        """Draw vectors that lie in groups."""
        centres = self.random.normal(size=(groups, self.half))[self.random.integers(0, groups, count)]
        return normalise((centres + self.random.normal(size=(count, self.half))).astype(np.float32))

    def _noise(self, rows: int, scale: float) -> Floats:
        return self.random.standard_normal((rows, self.half), np.float32) * np.float32(scale / np.sqrt(self.half))

    def vectors(self, passages: range) -> Floats:
        """Draw the vectors of all sentences of passages: (sentences, dimensions)."""
        counts, rows = self.counts[passages], np.array(passages)
        halves = []
        for base, passage_noise, sentence_noise in (
            (self.entities[self.entity[rows]], 0.5, 0.6),
            (self.aspects[self.aspect[rows]], 0.6, 1.0),
        ):
            passage_vectors = np.repeat(base + self._noise(len(rows), passage_noise), counts, axis=0)
            halves.append(passage_vectors + self._noise(len(passage_vectors), sentence_noise))
        return join(*halves)

    def queries(self, count: int) -> Floats:
        rows = self.random.integers(0, len(self.counts), count)
        entity, aspect = self.entities[self.entity[rows]], self.aspects[self.aspect[rows]]
        return join(entity + self._noise(count, 0.4), aspect + self._noise(count, 0.4))


class SyntheticModel:
    """A discourse model with fixed vectors of queries: the aspect is the number of the query."""

    threshold = 0.5

    def __init__(self, queries: Floats) -> None:
        self.identity = EncoderIdentity("made-up", "0" * 32, queries.shape[1], "/nowhere")
        self._queries = queries

    def query(self, entity: str, aspect: str) -> Floats:
        vector: Floats = self._queries[int(aspect)]
        return vector

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        raise AssertionError("the benchmark draws the vectors of sentences itself")


def means_of(rows: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the means of consecutive rows, `counts` rows each."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    means: Floats = np.add.reduceat(rows, starts, axis=0) / counts[:, None].astype(np.float32)
    return means


def round_to_bytes(vectors: Floats, parts: int) -> Floats:
    """Round vectors to 8 bits per dimension, with a scale for each of `parts` parts of a vector."""
    split = vectors.reshape(len(vectors), parts, -1)
    scales = np.abs(split).max(axis=2, keepdims=True) / 127
    rounded: Floats = (np.rint(split / scales) * scales).reshape(vectors.shape)
    return rounded


FORMATS: dict[str, tuple[Callable[[Floats], Floats], Callable[[int], int]]] = {
    "16-bit floats": (lambda v: v.astype(np.float16).astype(np.float32), lambda d: 2 * d),
    "8 bits, a scale for each half": (lambda v: round_to_bytes(v, 2), lambda d: d + 8),
    "8 bits, a scale for each sentence": (lambda v: round_to_bytes(v, 1), lambda d: d + 4),
}


@dataclass
class Built:
    """The data for the comparisons: the means of passages, exact and in each format, and the bits of sentences."""

    means: Floats
    formats: dict[str, Floats]
    bits: NDArray[np.uint8]
    centre: Floats
    seconds: float


def build(world: World, folder: Path, model: SyntheticModel) -> Built:
    """Store all documents in a library, as `Library.add` does, but without segmenting and annotating texts."""
    passages = len(world.counts)
    means, bits = [], []
    formats: dict[str, list[Floats]] = {name: [] for name in FORMATS}
    centre: Floats | None = None
    seconds = 0.0
    index = EmbeddedIndex(folder, create=True)
    with index.writing() as writer:
        writer.set_encoder(model.identity, SENTENCES)
        writer.commit()
        for begin in range(0, passages, BATCH):
            batch = range(begin, min(begin + BATCH, passages))
            vectors, counts = world.vectors(batch), world.counts[batch]
            centre = vectors[:10_000].mean(axis=0) if centre is None else centre
            means.append(means_of(vectors, counts))
            bits.append(np.packbits(vectors > centre, axis=1))
            for name, (rounded, _) in FORMATS.items():
                formats[name].append(means_of(rounded(vectors), counts))
            start = time.perf_counter()
            for document in documents(world, batch, vectors):
                writer.add(document)
            writer.commit()
            seconds += time.perf_counter() - start
            if begin % (10 * BATCH) == 0:
                say(f"{begin:,} of {passages:,} passages")
    index.close()
    assert centre is not None
    all_formats = {name: np.concatenate(rows) for name, rows in formats.items()}
    return Built(np.concatenate(means), all_formats, np.concatenate(bits), centre, seconds)


def documents(world: World, passages: range, vectors: Floats) -> Iterator[PreparedDocument]:
    row = 0
    for first in range(passages.start, passages.stop, TOGETHER):
        text, entries, span_vectors = "", [], []
        for number in range(first, first + TOGETHER):
            begin, spans = len(text), []
            for sentence in range(world.counts[number]):
                text += f"Sentence {sentence} of {number}. "
                spans.append(Span(text.rindex("Sentence"), len(text) - 1))
            heading = f"aspect {world.aspect[number]}"
            span = Span(begin, len(text) - 1)
            passage = Passage(f"d{first}", number - first, span, heading, None, tuple(spans), None, None)
            entries.append(PassageEntry(passage, span.of(text), heading, ()))
            span_vectors.append(SpanVectors(tuple(spans), vectors[row : row + len(spans)]))
            row += len(spans)
        digest = f"{first:032}".encode()
        document = Document(
            f"d{first}", text, f"entity {world.entity[first]}", {"ward": str(first // TOGETHER % WARDS)}
        )
        yield PreparedDocument(document, digest, digest, entries, {SENTENCES: span_vectors})


# --- measuring ---


def best(queries: Floats, means: Floats, allowed: NDArray[np.bool_] | None = None) -> list[set[int]]:
    """Return the k best of the allowed passages for each query, from the exact scores."""
    hits = []
    for query in queries:
        scores = means @ query
        if allowed is not None:
            scores[~allowed] = -np.inf
        hits.append(set(np.argpartition(-scores, K)[:K].tolist()))
    return hits


def recall(hits: list[set[int]], truth: list[set[int]]) -> str:
    shares = [len(query_hits & expected) / K for query_hits, expected in zip(hits, truth, strict=True)]
    return f"{np.mean(shares):.4f}"


def timed(search: Callable[[int], Any], count: int) -> tuple[list[Any], str, str]:
    """Return the results of each query, and the median and the 95th percentile of milliseconds."""
    results, times = [], []
    for number in range(count):
        start = time.perf_counter()
        results.append(search(number))
        times.append(1000 * (time.perf_counter() - start))
    measured = times[WARM:] if count > WARM else times
    return results, f"{np.percentile(measured, 50):.1f}", f"{np.percentile(measured, 95):.1f}"


def by_sentence(built: Built, passage_of: NDArray[np.int64], query: Floats, count: int) -> set[int]:
    """Search the nearest sentences by their bits, then rank their passages by the means."""
    query_bits = np.packbits(query[None] > built.centre, axis=1)
    _, rows = faiss.knn_hamming(query_bits, built.bits, count, variant="mc")
    passages = np.unique(passage_of[rows[0]])
    scores = built.means[passages] @ query
    return set(passages[np.argsort(-scores)[:K]].tolist())


def half_queries(queries: Floats, half: int) -> dict[str, Floats]:
    """Return the queries with one of their halves only."""
    entity, aspect = queries.copy(), queries.copy()
    entity[:, half:], aspect[:, :half] = 0, 0
    return {"entity alone": entity, "aspect alone": aspect}


def run(arguments: argparse.Namespace, folder: Path) -> None:
    world = World(arguments.sentences, arguments.half)
    total, passages = int(world.counts.sum()), len(world.counts)
    queries = world.queries(arguments.queries)
    kinds = {"entity and aspect": queries} | half_queries(queries, arguments.half)
    model = SyntheticModel(np.concatenate(list(kinds.values())))
    built = build(world, folder, model)
    faiss.omp_set_num_threads(1)
    lines = []
    with Library(folder, encoder="none", ranker="none", discourse=model) as library:
        wards = np.arange(passages) // TOGETHER % WARDS == 0
        ward = Filters.of({"ward": "0"})
        first = Query(entity="-", aspect="0")
        library.search(first, mode="cdv"), library.search(first, mode="cdv", filters=ward)  # opens the index
        for kind, (name, vectors) in enumerate(kinds.items()):
            for suffix, filters, allowed in (("", Filters(), None), (", one of ten wards", ward, wards)):
                truth = best(vectors, built.means, allowed)

                def search(number: int, kind: int = kind, filters: Filters = filters) -> Any:
                    query = Query(entity="-", aspect=str(kind * len(queries) + number))
                    return library.search(query, K, mode="cdv", filters=filters)

                results, p50, p95 = timed(search, len(queries))
                hits = [{_number(hit) for hit in query_results} for query_results in results]
                lines.append([f"capr: {name}{suffix}", p50, p95, recall(hits, truth)])
        index, truth = library.index, best(queries, built.means)
        results, p50, p95 = timed(lambda i: index.dense(queries[i], K, Filters(), (), SENTENCES), len(queries))
        hits = [{match.order - 1 for match in matches} for matches in results]
        lines.append(["of that, the index", p50, p95, recall(hits, truth)])
        disk = library.stats().disk
    passage_of = np.repeat(np.arange(passages), world.counts)
    for count in CANDIDATES:
        hits, p50, p95 = timed(lambda i, n=count: by_sentence(built, passage_of, queries[i], n), len(queries))
        lines.append([f"the nearest {count:,} sentences, then their passages", p50, p95, recall(hits, truth)])
    hits, p50, p95 = timed(lambda i: best(queries[i : i + 1], built.means)[0], min(100, len(queries)))
    lines.append(["all means in 32 bits (numpy, all cores)", p50, p95, recall(hits, truth[: len(hits)])])
    print(f"\n{total:,} sentences in {passages:,} passages, {2 * arguments.half} dimensions, {len(queries)} queries")
    table(f"search|p50 ms|p95 ms|recall@{K} of passages", lines)
    exact = queries @ built.means.T
    rows = []
    for name, (_, size) in FORMATS.items():
        means = built.formats[name]
        error = np.abs(queries @ means.T - exact).mean()
        rows.append([name, str(size(2 * arguments.half)), recall(best(queries, means), truth), f"{error:.6f}"])
    table(f"vector of a sentence|bytes|recall@{K}, all compared|mean error of a score", rows)
    record = pack(SpanVectors((Span(0, 1),), queries[:1]))
    assert unpack(record, 2 * arguments.half).spans == (Span(0, 1),)
    building = 1e6 * built.seconds / total
    print(f"{len(record)} bytes a sentence with its range and checksum; building {building:.0f} µs a sentence")
    print(", ".join(f"{name} {size / total:.0f} bytes a sentence" for name, size in disk.items()))


def _number(hit: Any) -> int:
    return int(hit.document[1:]) + int(hit.passage.index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--half", type=int, default=192, help="dimensions of each half")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--work", type=Path, help="where to put the library")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        run(arguments, Path(folder) / "library")


if __name__ == "__main__":
    main()
