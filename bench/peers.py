"""What a search cannot be faster than, and what others do, for library.py."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import corpus
import faiss
import numpy as np
import tantivy
from corpus import NEAREST as K
from corpus import Truth, say

from capr.annotate import Query
from capr.index import OnnxEncoder
from capr.index.words import analyzer, stems
from capr.search import Library

DEPTH, WARM, ASKED = 100, 20, 300
Latency = tuple[float, float]  # p50 and p95 in milliseconds
Search = Callable[[Any], Any]
Line = tuple[str, Latency, str]  # with the recall


class Asked:
    """The questions, with their words as capr looks for them, and their vectors."""

    def __init__(self, questions: list[str], library: Library, encoder: OnnxEncoder) -> None:
        self.questions = questions
        self.vectors = [encoder.query(question) for question in questions]
        parsed = [library._parser.parse(Query(question)) for question in questions]
        self.words = [[c.words for c in one.clauses if "text" in c.fields] for one in parsed]
        self.terms = [[stem for word in words for stem in stems(word)] for words in self.words]


def timed(search: Search, queries: Sequence[Any]) -> Latency:
    for query in queries[:WARM]:
        search(query)
    times = []
    for query in queries[WARM:]:
        start = time.perf_counter()
        search(query)
        times.append(1000 * (time.perf_counter() - start))
    times.sort()
    return statistics.median(times), times[int(0.95 * len(times))]


class Floor:
    """What a search by words and meaning has to do at the least, by the libraries that capr uses."""

    def __init__(self, folder: Path, vectors: np.ndarray, asked: Asked, encoder: OnnxEncoder, truth: Truth) -> None:
        self.folder, self.vectors, self.asked, self.encoder, self.truth = folder, vectors, asked, encoder, truth
        schema = tantivy.SchemaBuilder().add_integer_field("number", fast=True)
        self.schema = schema.add_text_field("text", tokenizer_name="words").build()
        exists = (folder / "tantivy").exists()
        (folder / "tantivy").mkdir(exist_ok=True)
        index = tantivy.Index(self.schema, path=str(folder / "tantivy"))
        index.register_tokenizer("words", analyzer())
        if not exists:
            say("raw tantivy")
            writer = index.writer(256_000_000, 2)
            for number, text in texts(folder):
                writer.add_document(tantivy.Document(number=number - 1, text=text))
            writer.commit()
            writer.wait_merging_threads()
        index.reload()
        self.searcher = index.searcher()
        self.nearest: tuple[str, Search] = ("", lambda vector: None)

    def words(self, terms: Sequence[str]) -> list[int]:
        parts = [(tantivy.Occur.Should, tantivy.Query.term_query(self.schema, "text", term)) for term in terms]
        hits = self.searcher.search(tantivy.Query.boolean_query(parts), DEPTH, count=False).hits
        return self.searcher.fast_field_values("number", [address for _, address in hits]) if hits else []

    def lines(self, graph: bool) -> list[Line]:
        found = [("encoding of the query", timed(self.encoder.query, self.asked.questions), "")]
        found.append(("raw tantivy", timed(self.words, self.asked.terms), ""))
        best = float("inf")
        for kind in ("exact SQ8", "IVF SQ8", *(["HNSW SQ8"] if graph else [])):
            search, setting = self._faiss(kind)
            times = timed(search, self.asked.vectors)
            rows = [search(vector) for vector in self.asked.vectors]
            found.append((f"raw faiss {kind}{setting}", times, self.truth.told(rows)))
            if self.truth.recall(rows, corpus.ROUNDED) >= corpus.ENOUGH and times[0] < best:
                best, self.nearest = times[0], (kind, search)
        return found

    def _faiss(self, kind: str) -> tuple[Search, str]:
        """Searches an index of faiss, tuned."""
        file, dimensions, dot = self.folder / f"{kind}.faiss", self.vectors.shape[1], faiss.METRIC_INNER_PRODUCT
        eight = faiss.ScalarQuantizer.QT_8bit
        lists = min(4096, int(4 * len(self.vectors) ** 0.5))
        if not file.exists():
            say("raw faiss", kind)
            if kind == "IVF SQ8":
                coarse = faiss.IndexFlatIP(dimensions)
                index = faiss.IndexIVFScalarQuantizer(coarse, dimensions, lists, eight, dot, False)
                index.cp.niter = 10
            elif kind == "HNSW SQ8":
                index = faiss.IndexHNSWSQ(dimensions, eight, 32, dot)
            else:
                index = faiss.IndexScalarQuantizer(dimensions, eight, dot)
            draw = np.random.default_rng(5)
            some = draw.choice(len(self.vectors), min(len(self.vectors), 40 * lists), replace=False)
            index.train(np.ascontiguousarray(self.vectors[np.sort(some)]))
            for begin in range(0, len(self.vectors), 50_000):
                index.add(np.ascontiguousarray(self.vectors[begin : begin + 50_000]))
            faiss.write_index(index, str(file))
        index = faiss.read_index(str(file))

        def search(value: int, vector: np.ndarray) -> np.ndarray:
            if kind == "IVF SQ8":
                index.nprobe = value
            elif kind == "HNSW SQ8":
                index.hnsw.efSearch = value
            found = index.search(vector[None], DEPTH)[1][0]
            return found[found >= 0]

        if kind == "exact SQ8":
            return lambda vector: search(0, vector), ""
        probes = [*range(1, 8), *range(8, 128, 8), *range(128, lists, 64)]
        value = self.truth.tuned(search, probes if kind == "IVF SQ8" else (100, 150, 200, 400, 800, 1600))
        return lambda vector: search(value, vector), f" ({f'{value} of {lists} lists' if 'IVF' in kind else value})"

    def together(self) -> Latency:
        def all_three(both: tuple[str, Sequence[str]]) -> None:
            self.words(both[1])
            self.nearest[1](self.encoder.query(both[0]))

        return timed(all_three, list(zip(self.asked.questions, self.asked.terms, strict=True)))


def texts(folder: Path) -> Iterable[tuple[int, str]]:
    """All passages of the library, with their numbers."""
    database = sqlite3.connect(folder / "library" / "library.db", check_same_thread=False)
    return database.execute("SELECT number, text FROM passage ORDER BY number")


def others(folder: Path, vectors: np.ndarray, asked: Asked, encoder: OnnxEncoder, truth: Truth) -> list[Line]:
    found: list[Line] = []
    for peer in (sqlite_peer, bm25s_peer, lancedb_peer):
        say(peer.__name__)
        try:
            found += peer(folder, vectors, asked, encoder, truth)
        except Exception as error:  # it is not installed, or another release than the one this was written for
            said = f"{peer.__name__} is skipped: {error}".splitlines()[0]
            say(said)
            print(f"{said}\n")
    return found


def sqlite_peer(folder: Path, _v: np.ndarray, asked: Asked, *_: object) -> list[Line]:
    exists = (folder / "fts5.db").exists()
    database = sqlite3.connect(folder / "fts5.db")
    if not exists:
        database.execute("CREATE VIRTUAL TABLE passage USING fts5(text, tokenize='porter unicode61', content='')")
        database.executemany("INSERT INTO passage (rowid, text) VALUES (?, ?)", texts(folder))
        database.commit()
    query = "SELECT rowid FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"
    wanted = [" OR ".join(f'"{word}"' for word in words) for words in asked.words]
    return [("SQLite FTS5", timed(lambda words: database.execute(query, (words, DEPTH)).fetchall(), wanted), "")]


def bm25s_peer(folder: Path, _v: np.ndarray, asked: Asked, *_: object) -> list[Line]:
    import bm25s
    import numba  # noqa: F401 -- what it is fast with

    model = bm25s.BM25(backend="numba")
    model.index([stems(text) for _, text in texts(folder)], show_progress=False)
    options = {"k": DEPTH, "show_progress": False, "n_threads": 1}
    return [("bm25s (numba)", timed(lambda terms: model.retrieve([list(terms)], **options), asked.terms), "")]


def lancedb_peer(folder: Path, vectors: np.ndarray, asked: Asked, encoder: OnnxEncoder, truth: Truth) -> list[Line]:
    import lancedb
    import pyarrow

    database = lancedb.connect(folder / "lance")
    kind = pyarrow.list_(pyarrow.float32(), vectors.shape[1])
    if not (folder / "lance" / "passages.lance").exists():
        schema = pyarrow.schema([("number", pyarrow.int64()), ("text", pyarrow.string()), ("vector", kind)])

        def batches() -> Iterator[Any]:
            rows = iter(texts(folder))
            while some := list(islice(rows, 10_000)):
                numbers, words = [number - 1 for number, _ in some], [text for _, text in some]
                flat = pyarrow.array(vectors[numbers[0] : numbers[-1] + 1].reshape(-1))
                both = [
                    pyarrow.array(numbers),
                    pyarrow.array(words),
                    pyarrow.FixedSizeListArray.from_arrays(flat, type=kind),
                ]
                yield pyarrow.RecordBatch.from_arrays(both, schema=schema)

        table = database.create_table("passages", batches(), schema=schema)
        table.create_index("text", config=lancedb.index.FTS())
        table.create_index("vector", config=lancedb.index.IvfSq(distance_type="dot"))
    passages = database.open_table("passages")

    def near(probes: int, vector: np.ndarray) -> list[int]:
        search = passages.search(vector, vector_column_name="vector").distance_type("dot").nprobes(probes)
        return search.limit(DEPTH).select(["number"]).to_arrow()["number"].to_pylist()

    def words(question: str) -> object:
        return passages.search(question, query_type="fts").limit(DEPTH).select(["number"]).to_arrow()

    probes = truth.tuned(near, (1, 2, 5, 10, 20, 40, 80, 160))

    def hybrid(question: str) -> object:
        search = passages.search(query_type="hybrid", vector_column_name="vector").distance_type("dot").nprobes(probes)
        return search.vector(encoder.query(question)).text(question).limit(K).select(["number", "text"]).to_arrow()

    rows = [near(probes, vector) for vector in asked.vectors]
    return [
        ("LanceDB full text", timed(words, asked.questions), ""),
        (f"LanceDB IVF SQ8 ({probes} lists)", timed(lambda v: near(probes, v), asked.vectors), truth.told(rows)),
        ("LanceDB hybrid, with encoding", timed(hybrid, asked.questions), ""),
    ]
