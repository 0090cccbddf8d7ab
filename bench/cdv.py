"""Search by discourse vectors of sentences: time, recall and bytes, beside looking for the nearest sentences first.

python bench/cdv.py [--sentences 1000000] [--half 192] [--queries 300] [--work FOLDER]

Texts and vectors are made up. A document has an entity out of many, a passage one of 400 aspects, some far more
frequent than others; entities and aspects lie in groups, and every passage and every sentence differs from its own by
noise. A query is the entity and the aspect of some passage, with noise. The truth is the mean of the products of a
passage's sentences with the query in 32 bits, over all passages.
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

from capr.annotate import Query
from capr.documents import Document, Span
from capr.index import EmbeddedIndex, Entry, Filters, Grain, Prepared, Sentences
from capr.index.protocol import EncoderIdentity
from capr.index.sentences import packed, unpacked
from capr.search import Library
from capr.segment import Passage

TOGETHER = 10  # passages of a document
ASPECTS = 400
WARDS = 10
BATCH = 2000  # passages that are kept at once
K = 10
WARM = 20  # queries before time is taken
CANDIDATES = (1000, 4000, 10_000)  # nearest sentences that are looked for in the other way
Floats = NDArray[np.float32]


def normal(vectors: Floats) -> Floats:
    found: Floats = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
    return found


def joined(entity: Floats, aspect: Floats) -> Floats:
    return np.concatenate([normal(entity), normal(aspect)], axis=-1) / np.float32(np.sqrt(2))


class World:
    """Made-up documents: which entity and aspect each passage has, and how many sentences."""

    def __init__(self, sentences: int, half: int) -> None:
        self.random, self.half = np.random.default_rng(1), half
        counts = np.minimum(self.random.geometric(0.1, sentences // 9 + 100), 60)
        passages = int(np.searchsorted(np.cumsum(counts), sentences)) // TOGETHER * TOGETHER
        self.counts = counts[:passages]
        self.entities = self._grouped(max(10, passages // TOGETHER * 2 // 3), 50)
        self.aspects = self._grouped(ASPECTS, 20)
        documents = self.random.integers(0, len(self.entities), passages // TOGETHER)
        self.entity = np.repeat(documents, TOGETHER)
        self.aspect = (ASPECTS * self.random.random(passages) ** 2.5).astype(int)

    def _grouped(self, count: int, groups: int) -> Floats:
        middle = self.random.normal(size=(groups, self.half))[self.random.integers(0, groups, count)]
        return normal((middle + self.random.normal(size=(count, self.half))).astype(np.float32))

    def _noise(self, rows: int, much: float) -> Floats:
        return self.random.standard_normal((rows, self.half), np.float32) * np.float32(much / np.sqrt(self.half))

    def vectors(self, passages: range) -> Floats:
        """Of all sentences of some passages: (sentences, dimensions)."""
        counts, rows = self.counts[passages], np.array(passages)
        halves = []
        for base, together, alone in (
            (self.entities[self.entity[rows]], 0.5, 0.6),
            (self.aspects[self.aspect[rows]], 0.6, 1.0),
        ):
            near = np.repeat(base + self._noise(len(rows), together), counts, axis=0)
            halves.append(near + self._noise(len(near), alone))
        return joined(*halves)

    def queries(self, count: int) -> Floats:
        rows = self.random.integers(0, len(self.counts), count)
        entity, aspect = self.entities[self.entity[rows]], self.aspects[self.aspect[rows]]
        return joined(entity + self._noise(count, 0.4), aspect + self._noise(count, 0.4))


class MadeUp:
    """A discourse model that knows the vectors of its queries beforehand: the aspect is the number of one."""

    threshold = 0.5

    def __init__(self, queries: Floats) -> None:
        self.identity = EncoderIdentity("made-up", "0" * 32, queries.shape[1], "/nowhere")
        self._queries = queries

    def query(self, entity: str, aspect: str) -> Floats:
        found: Floats = self._queries[int(aspect)]
        return found

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        raise AssertionError("the vectors of sentences are made beforehand")


def mean_by(rows: Floats, counts: NDArray[np.int64]) -> Floats:
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    found: Floats = np.add.reduceat(rows, starts, axis=0) / counts[:, None].astype(np.float32)
    return found


def in_bytes(vectors: Floats, parts: int) -> Floats:
    """What 8 bits for each dimension leave of vectors, with so many scales for each."""
    cut = vectors.reshape(len(vectors), parts, -1)
    scales = np.abs(cut).max(axis=2, keepdims=True) / 127
    found: Floats = (np.rint(cut / scales) * scales).reshape(vectors.shape)
    return found


FORMATS: dict[str, tuple[Callable[[Floats], Floats], Callable[[int], int]]] = {
    "16-bit floats": (lambda v: v.astype(np.float16).astype(np.float32), lambda d: 2 * d),
    "8 bits, a scale for each half": (lambda v: in_bytes(v, 2), lambda d: d + 8),
    "8 bits, a scale for each sentence": (lambda v: in_bytes(v, 1), lambda d: d + 4),
}


@dataclass
class Built:
    """What is compared with: the means of passages, exact and as each format leaves them, and the bits of sentences."""

    means: Floats
    formats: dict[str, Floats]
    bits: NDArray[np.uint8]
    centre: Floats
    seconds: float


def build(world: World, folder: Path, model: MadeUp) -> Built:
    """Keeps everything in a library, as `Library.add` does, less the cutting and annotating of texts."""
    passages = len(world.counts)
    means, bits = [], []
    formats: dict[str, list[Floats]] = {name: [] for name in FORMATS}
    centre: Floats | None = None
    seconds = 0.0
    index = EmbeddedIndex(folder, create=True)
    with index.writing() as writer:
        writer.set_encoder(model.identity, Grain.SENTENCES)
        writer.commit()
        for begin in range(0, passages, BATCH):
            some = range(begin, min(begin + BATCH, passages))
            vectors, counts = world.vectors(some), world.counts[some]
            centre = vectors[:10_000].mean(axis=0) if centre is None else centre
            means.append(mean_by(vectors, counts))
            bits.append(np.packbits(vectors > centre, axis=1))
            for name, (rounded, _) in FORMATS.items():
                formats[name].append(mean_by(rounded(vectors), counts))
            start = time.perf_counter()
            for one in documents(world, some, vectors):
                writer.add(one)
            writer.commit()
            seconds += time.perf_counter() - start
            if begin % (10 * BATCH) == 0:
                say(f"{begin:,} of {passages:,} passages")
    index.close()
    assert centre is not None
    joined_formats = {name: np.concatenate(rows) for name, rows in formats.items()}
    return Built(np.concatenate(means), joined_formats, np.concatenate(bits), centre, seconds)


def documents(world: World, passages: range, vectors: Floats) -> Iterator[Prepared]:
    row = 0
    for first in range(passages.start, passages.stop, TOGETHER):
        text, entries, kept = "", [], []
        for number in range(first, first + TOGETHER):
            begin, spans = len(text), []
            for sentence in range(world.counts[number]):
                text += f"Sentence {sentence} of {number}. "
                spans.append(Span(text.rindex("Sentence"), len(text) - 1))
            heading = f"aspect {world.aspect[number]}"
            place = Span(begin, len(text) - 1)
            passage = Passage(f"d{first}", number - first, place, heading, None, tuple(spans), None, None)
            entries.append(Entry(passage, text[place.begin : place.end], heading, ()))
            kept.append(Sentences(tuple(spans), vectors[row : row + len(spans)]))
            row += len(spans)
        digest = f"{first:032}".encode()
        document = Document(
            f"d{first}", text, f"entity {world.entity[first]}", {"ward": str(first // TOGETHER % WARDS)}
        )
        yield Prepared(document, digest, digest, entries, None, kept)


# --- measuring ---


def best(queries: Floats, means: Floats, allowed: NDArray[np.bool_] | None = None) -> list[set[int]]:
    found = []
    for query in queries:
        scores = means @ query
        if allowed is not None:
            scores[~allowed] = -np.inf
        found.append(set(np.argpartition(-scores, K)[:K].tolist()))
    return found


def recall(found: list[set[int]], truth: list[set[int]]) -> str:
    return f"{np.mean([len(one & right) / K for one, right in zip(found, truth, strict=True)]):.4f}"


def timed(ask: Callable[[int], Any], count: int) -> tuple[list[Any], str, str]:
    """What is found for each query, and the median and the 95th percentile of milliseconds."""
    answers, times = [], []
    for number in range(count):
        start = time.perf_counter()
        answers.append(ask(number))
        times.append(1000 * (time.perf_counter() - start))
    some = times[WARM:] if count > WARM else times
    return answers, f"{np.percentile(some, 50):.1f}", f"{np.percentile(some, 95):.1f}"


def by_sentence(built: Built, own: NDArray[np.int64], query: Floats, count: int) -> set[int]:
    """The other way: the nearest sentences by their bits, then the means of their passages."""
    asked = np.packbits(query[None] > built.centre, axis=1)
    _, rows = faiss.knn_hamming(asked, built.bits, count, variant="mc")
    passages = np.unique(own[rows[0]])
    scores = built.means[passages] @ query
    return set(passages[np.argsort(-scores)[:K]].tolist())


def half_queries(queries: Floats, half: int) -> dict[str, Floats]:
    entity, aspect = queries.copy(), queries.copy()
    entity[:, half:], aspect[:, :half] = 0, 0
    return {"entity alone": entity, "aspect alone": aspect}


def table(heading: str, lines: list[list[str]]) -> None:
    names = heading.split("|")
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")
    print(flush=True)


def run(given: argparse.Namespace, folder: Path) -> None:
    world = World(given.sentences, given.half)
    total, passages = int(world.counts.sum()), len(world.counts)
    queries = world.queries(given.queries)
    asked = {"entity and aspect": queries} | half_queries(queries, given.half)
    model = MadeUp(np.concatenate(list(asked.values())))
    built = build(world, folder, model)
    faiss.omp_set_num_threads(1)
    lines = []
    with Library(folder, encoder="none", ranker="none", discourse=model) as library:
        wards = np.arange(passages) // TOGETHER % WARDS == 0
        some = Filters.of({"ward": "0"})
        first = Query(entity="-", aspect="0")
        library.search(first, mode="cdv"), library.search(first, mode="cdv", filters=some)  # opens what is asked
        for place, (name, vectors) in enumerate(asked.items()):
            for told, filters, allowed in (("", Filters(), None), (", one of ten wards", some, wards)):
                truth = best(vectors, built.means, allowed)

                def ask(number: int, place: int = place, filters: Filters = filters) -> Any:
                    query = Query(entity="-", aspect=str(place * len(queries) + number))
                    return library.search(query, K, mode="cdv", filters=filters)

                answers, p50, p95 = timed(ask, len(queries))
                found = [{_number(hit) for hit in answer} for answer in answers]
                lines.append([f"capr: {name}{told}", p50, p95, recall(found, truth)])
        index, truth = library.index, best(queries, built.means)
        answers, p50, p95 = timed(lambda i: index.dense(queries[i], K, Filters(), (), Grain.SENTENCES), len(queries))
        found = [{one.number - 1 for one in answer} for answer in answers]
        lines.append(["of that, the index", p50, p95, recall(found, truth)])
        disk = library.stats().disk
    own = np.repeat(np.arange(passages), world.counts)
    for count in CANDIDATES:
        near, p50, p95 = timed(lambda i, n=count: by_sentence(built, own, queries[i], n), len(queries))
        lines.append([f"the nearest {count:,} sentences, then their passages", p50, p95, recall(near, truth)])
    everything, p50, p95 = timed(lambda i: best(queries[i : i + 1], built.means)[0], min(100, len(queries)))
    lines.append(["all means in 32 bits (numpy, all cores)", p50, p95, recall(everything, truth[: len(everything)])])
    print(f"\n{total:,} sentences in {passages:,} passages, {2 * given.half} dimensions, {len(queries)} queries")
    table(f"search|p50 ms|p95 ms|recall@{K} of passages", lines)
    exact = queries @ built.means.T
    rows = []
    for name, (_, size) in FORMATS.items():
        means = built.formats[name]
        error = np.abs(queries @ means.T - exact).mean()
        rows.append([name, str(size(2 * given.half)), recall(best(queries, means), truth), f"{error:.6f}"])
    table(f"vector of a sentence|bytes|recall@{K}, all compared|mean error of a score", rows)
    kept = len(packed(Sentences((Span(0, 1),), queries[:1])))
    assert unpacked(packed(Sentences((Span(0, 1),), queries[:1])), 2 * given.half).spans == (Span(0, 1),)
    print(
        f"{kept} bytes a sentence with its range and checksum; building {1e6 * built.seconds / total:.0f} µs a sentence"
    )
    print(", ".join(f"{name} {size / total:.0f} bytes a sentence" for name, size in disk.items()))


def _number(hit: Any) -> int:
    return int(hit.document[1:]) + int(hit.passage.index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--half", type=int, default=192, help="dimensions of each half")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--work", type=Path, help="where to put the library")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        run(given, Path(folder) / "library")


if __name__ == "__main__":
    main()
