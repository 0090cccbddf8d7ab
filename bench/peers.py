"""The lower bound on the time of a search, and other search libraries, for library.py."""

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
from capr.runtime.encoder import OnnxEncoder
from capr.search import Library
from capr.text.stemming import analyzer, stems

DEPTH, WARM, ASKED = 100, 20, 300
Latency = tuple[float, float]  # p50 and p95 in milliseconds
Search = Callable[[Any], Any]
Line = tuple[str, Latency, str]  # name, latency and recall


class ParsedQuestions:
    """The questions, with their words as capr's parser reads them, and their vectors."""

    def __init__(self, questions: list[str], library: Library, encoder: OnnxEncoder) -> None:
        self.questions = questions
        self.vectors = [encoder.query(question) for question in questions]
        parsed = [library.resources.parser.parse(Query(question)) for question in questions]
        self.words = [[clause.words for clause in query.clauses if "text" in clause.fields] for query in parsed]
        self.terms = [[stem for word in words for stem in stems(word)] for words in self.words]


def latency_of(search: Search, queries: Sequence[Any]) -> Latency:
    """Run all queries, and return the latency without the first ones, which warm up."""
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
    """The steps of any search by words and vectors, done with the libraries that capr uses."""

    def __init__(
        self, folder: Path, vectors: np.ndarray, questions: ParsedQuestions, encoder: OnnxEncoder, truth: Truth
    ) -> None:
        self.folder, self.vectors, self.questions = folder, vectors, questions
        self.encoder, self.truth = encoder, truth
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
        """Measure each step alone; `graph` includes the HNSW index."""
        lines = [("encoding of the query", latency_of(self.encoder.query, self.questions.questions), "")]
        lines.append(("raw tantivy", latency_of(self.words, self.questions.terms), ""))
        best = float("inf")
        for kind in ("exact SQ8", "IVF SQ8", *(["HNSW SQ8"] if graph else [])):
            search, setting = self._faiss(kind)
            latency = latency_of(search, self.questions.vectors)
            rows = [search(vector) for vector in self.questions.vectors]
            lines.append((f"raw faiss {kind}{setting}", latency, self.truth.recalls(rows)))
            if self.truth.recall(rows, corpus.ROUNDED) >= corpus.ENOUGH and latency[0] < best:
                best, self.nearest = latency[0], (kind, search)
        return lines

    def _faiss(self, kind: str) -> tuple[Search, str]:
        """Build or read an index of faiss, and return a tuned search and its setting."""
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
            sample = draw.choice(len(self.vectors), min(len(self.vectors), 40 * lists), replace=False)
            index.train(np.ascontiguousarray(self.vectors[np.sort(sample)]))
            for begin in range(0, len(self.vectors), 50_000):
                index.add(np.ascontiguousarray(self.vectors[begin : begin + 50_000]))
            faiss.write_index(index, str(file))
        index = faiss.read_index(str(file))

        def search(value: int, vector: np.ndarray) -> np.ndarray:
            if kind == "IVF SQ8":
                index.nprobe = value
            elif kind == "HNSW SQ8":
                index.hnsw.efSearch = value
            rows = index.search(vector[None], DEPTH)[1][0]
            return rows[rows >= 0]

        if kind == "exact SQ8":
            return lambda vector: search(0, vector), ""
        probes = [*range(1, 8), *range(8, 128, 8), *range(128, lists, 64)]
        value = self.truth.tune(search, probes if kind == "IVF SQ8" else (100, 150, 200, 400, 800, 1600))
        return lambda vector: search(value, vector), f" ({f'{value} of {lists} lists' if 'IVF' in kind else value})"

    def together(self) -> Latency:
        """Measure all three steps, one after the other."""

        def all_three(query: tuple[str, Sequence[str]]) -> None:
            question, terms = query
            self.words(terms)
            self.nearest[1](self.encoder.query(question))

        return latency_of(all_three, list(zip(self.questions.questions, self.questions.terms, strict=True)))


def texts(folder: Path) -> Iterable[tuple[int, str]]:
    """Return the number and the text of every passage of the library."""
    database = sqlite3.connect(folder / "library" / "library.db", check_same_thread=False)
    return database.execute("SELECT number, text FROM passage ORDER BY number")


def peer_lines(
    folder: Path, vectors: np.ndarray, questions: ParsedQuestions, encoder: OnnxEncoder, truth: Truth
) -> list[Line]:
    """Measure all peers that are installed."""
    lines: list[Line] = []
    for peer in (sqlite_peer, bm25s_peer, lancedb_peer):
        say(peer.__name__)
        try:
            lines += peer(folder, vectors, questions, encoder, truth)
        except Exception as error:  # the peer is not installed, or has an incompatible version
            message = f"{peer.__name__} is skipped: {error}".splitlines()[0]
            say(message)
            print(f"{message}\n")
    return lines


def sqlite_peer(folder: Path, _v: np.ndarray, questions: ParsedQuestions, *_: object) -> list[Line]:
    exists = (folder / "fts5.db").exists()
    database = sqlite3.connect(folder / "fts5.db")
    if not exists:
        database.execute("CREATE VIRTUAL TABLE passage USING fts5(text, tokenize='porter unicode61', content='')")
        database.executemany("INSERT INTO passage (rowid, text) VALUES (?, ?)", texts(folder))
        database.commit()
    query = "SELECT rowid FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"
    expressions = [" OR ".join(f'"{word}"' for word in words) for words in questions.words]
    latency = latency_of(lambda expression: database.execute(query, (expression, DEPTH)).fetchall(), expressions)
    return [("SQLite FTS5", latency, "")]


def bm25s_peer(folder: Path, _v: np.ndarray, questions: ParsedQuestions, *_: object) -> list[Line]:
    import bm25s
    import numba  # noqa: F401 -- bm25s is fast only with numba

    model = bm25s.BM25(backend="numba")
    model.index([stems(text) for _, text in texts(folder)], show_progress=False)
    options = {"k": DEPTH, "show_progress": False, "n_threads": 1}
    latency = latency_of(lambda terms: model.retrieve([list(terms)], **options), questions.terms)
    return [("bm25s (numba)", latency, "")]


def lancedb_peer(
    folder: Path, vectors: np.ndarray, questions: ParsedQuestions, encoder: OnnxEncoder, truth: Truth
) -> list[Line]:
    import lancedb
    import pyarrow

    database = lancedb.connect(folder / "lance")
    kind = pyarrow.list_(pyarrow.float32(), vectors.shape[1])
    if not (folder / "lance" / "passages.lance").exists():
        schema = pyarrow.schema([("number", pyarrow.int64()), ("text", pyarrow.string()), ("vector", kind)])

        def batches() -> Iterator[Any]:
            rows = iter(texts(folder))
            while batch := list(islice(rows, 10_000)):
                numbers, passage_texts = [number - 1 for number, _ in batch], [text for _, text in batch]
                flat = pyarrow.array(vectors[numbers[0] : numbers[-1] + 1].reshape(-1))
                columns = [
                    pyarrow.array(numbers),
                    pyarrow.array(passage_texts),
                    pyarrow.FixedSizeListArray.from_arrays(flat, type=kind),
                ]
                yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)

        table = database.create_table("passages", batches(), schema=schema)
        table.create_index("text", config=lancedb.index.FTS())
        table.create_index("vector", config=lancedb.index.IvfSq(distance_type="dot"))
    passages = database.open_table("passages")

    def near(probes: int, vector: np.ndarray) -> list[int]:
        search = passages.search(vector, vector_column_name="vector").distance_type("dot").nprobes(probes)
        return search.limit(DEPTH).select(["number"]).to_arrow()["number"].to_pylist()

    def words(question: str) -> object:
        return passages.search(question, query_type="fts").limit(DEPTH).select(["number"]).to_arrow()

    probes = truth.tune(near, (1, 2, 5, 10, 20, 40, 80, 160))

    def hybrid(question: str) -> object:
        search = passages.search(query_type="hybrid", vector_column_name="vector").distance_type("dot").nprobes(probes)
        return search.vector(encoder.query(question)).text(question).limit(K).select(["number", "text"]).to_arrow()

    rows = [near(probes, vector) for vector in questions.vectors]
    nearest = latency_of(lambda vector: near(probes, vector), questions.vectors)
    return [
        ("LanceDB full text", latency_of(words, questions.questions), ""),
        (f"LanceDB IVF SQ8 ({probes} lists)", nearest, truth.recalls(rows)),
        ("LanceDB hybrid, with encoding", latency_of(hybrid, questions.questions), ""),
    ]
