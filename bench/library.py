"""Search in libraries of several sizes: time, memory, disk and recall, compared with a lower bound and with peers.

    python bench/library.py [--encoder FOLDER] [--sizes N ...] [--data ../shared/data] [--work FOLDER]

The lower bound is the time of the steps of any such search: encode the query, search its words with tantivy and its
vector with faiss. Peers, if installed: pip install bm25s numba lancedb sentence-transformers (sentence-transformers
also needs --torch FOLDER, its model).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any

import corpus
import numpy as np
from corpus import NEAREST as K
from corpus import Times, Truth, say
from peers import ASKED, DEPTH, WARM, Floor, Latency, ParsedQuestions, latency_of, peer_lines
from tables import table

from capr.index import PASSAGES, Filters
from capr.index.embedded.engine import EmbeddedIndex
from capr.index.filters import ASPECT
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.shipped import shipped
from capr.search import Library
from capr.search.batches import ENCODED as BATCH

MODES: dict[str, dict[str, Any]] = {
    "lexical": {"mode": "lexical"},
    "dense": {"mode": "dense"},
    "hybrid": {},
    "hybrid, one patient": {"filters": ["patient=p1"]},
    "hybrid, note type (20%)": {"filters": ["type=Discharge summary"]},
    "hybrid, one year (10%)": {"filters": ["date=2019"]},
    "hybrid, section": {},
    "hybrid, grouped by patient": {"group": "patient"},
    "hybrid, the best 32 read by the ranker": {"rerank": True},
}
FEW = 30  # questions for a mode with the ranker, which is slow
FIRST = """
import sys, time
start = time.perf_counter()
import capr
from capr.search import Library
results = Library(sys.argv[1]).search(sys.argv[2], rerank=False)
print(time.perf_counter() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--encoder", type=Path, default=shipped("encoder"), help="folder; default: the built-in encoder"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 200_000, 1_000_000])
    parser.add_argument("--data", type=Path, help="folder of the public data sets; default: synthetic texts")
    parser.add_argument(
        "--passages", type=Path, help="a file of passages instead: lines of JSON, [document, heading, text]"
    )
    parser.add_argument(
        "--vectors", type=Path, action="append", default=[], help="a file of the vectors of the passages, .npy"
    )
    parser.add_argument("--queries", type=Path, help="a JSON list of questions")
    parser.add_argument("--encode", type=int, default=2000, help="the number of passages to encode")
    parser.add_argument("--work", type=Path, help="where to keep the libraries, to use them again")
    parser.add_argument("--torch", type=Path, help="folder of the encoder's checkpoint for sentence-transformers")
    parser.add_argument("--all-peers", action="store_true", help="peers and graph also beyond 100,000 passages")
    parser.add_argument("--searching", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.searching:
        print(json.dumps(searching(arguments.searching)))
    elif arguments.work:
        run(arguments, arguments.work)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run(arguments, Path(folder))


def run(arguments: argparse.Namespace, work: Path) -> None:
    encoder = OnnxEncoder(arguments.encoder)
    questions = corpus.questions(arguments.queries, arguments.data, WARM + ASKED)
    first = list(islice(corpus.rows(arguments.passages, arguments.data), arguments.encode))
    each, encoded = encoding(encoder, first, questions, arguments.torch)
    vectors = corpus.real_vectors(arguments.vectors, first, encoded)
    for size in arguments.sizes:
        folder = work / str(size)
        if not (folder / "build.json").exists():
            rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            build(folder, size, corpus.rows(arguments.passages, arguments.data), vectors, encoder, each)
        (folder / "questions.json").write_text(json.dumps(questions), "utf-8")
        measure(folder, encoder, questions, arguments.all_peers or size <= 100_000)


def encoding(
    encoder: OnnxEncoder, rows: Sequence[corpus.SourcePassage], questions: list[str], torch: Path | None
) -> tuple[float, np.ndarray]:
    """Print the speed of the encoders, and return the seconds per passage of capr's encoder, and its vectors."""
    texts = ["\n".join(part for part in row[1:] if part) for row in rows]
    say(f"encoding {len(texts):,} passages")
    encoder.passages(texts[:32])
    start = time.perf_counter()
    vectors = [encoder.passages(texts[begin : begin + BATCH]) for begin in range(0, len(texts), BATCH)]
    each = (time.perf_counter() - start) / len(texts)
    latency = latency_of(encoder.query, questions)
    lines = [["capr (ONNX)", f"{1 / each:,.0f}", f"{latency[0]:.1f}", f"{latency[1]:.1f}", ""]]
    try:
        from sentence_transformers import SentenceTransformer

        if torch is None:
            raise ImportError
        model = SentenceTransformer(str(torch), device="cpu")
        model.encode(texts[:32])
        sample = texts[:500]
        start = time.perf_counter()
        model.encode(sample, batch_size=32)
        peer_each = (time.perf_counter() - start) / len(sample)
        peer = latency_of(model.encode, questions)
        ratio = f"{peer_each / each:.2f} / {peer[0] / latency[0]:.2f}"
        lines.append(["sentence-transformers", f"{1 / peer_each:,.0f}", f"{peer[0]:.1f}", f"{peer[1]:.1f}", ratio])
    except ImportError:
        say("sentence-transformers is not installed, or --torch is not given: skipped")
    print("\n## Encoding\n")
    table("encoder|passages/s|query p50 ms|query p95 ms|times as long as capr (passage / query)", lines)
    return each, np.concatenate(vectors)


# --- building ---


def build(
    folder: Path,
    size: int,
    rows: Iterable[corpus.SourcePassage],
    vectors: corpus.PassageVectors,
    encoder: OnnxEncoder,
    each: float,
) -> None:
    """Build a library, and save its vectors and the times of the steps."""
    say(f"building {size:,} passages")
    times, total, real = Times(), 0, 0
    index = EmbeddedIndex(folder / "library", create=True)
    with index.writing() as writer, (folder / "vectors.f32").open("wb") as file:
        add_timer(writer, times, "_catch_up_words", "words")
        add_timer(writer, times, "_catch_up_vectors", "vectors")
        add_timer(writer, times, "close", "merging")
        add_timer(writer, times, "commit", "committing")
        writer.set_encoder(encoder.identity)
        writer.commit()
        waiting = 0
        for document, positions in corpus.documents(rows, size, times):
            passage_vectors = vectors.of(positions)
            real += vectors.known(positions)
            file.write(passage_vectors.tobytes())
            writer.add(replace(document, vectors={PASSAGES: list(passage_vectors)}))
            waiting += len(positions)
            total += len(positions)
            if waiting >= BATCH or total >= size:
                writer.commit()
                waiting = 0
                if total // 50_000 != (total - BATCH) // 50_000:
                    say(f"{total:,} passages", {name: round(seconds) for name, seconds in times.items()})
    index.close()
    times["storing"] = times.pop("committing") - times["words"] - times["vectors"]
    times["words"] += times.pop("merging")
    times |= {"passages": total, "real vectors": real, "encoding": each}
    (folder / "build.json").write_text(json.dumps(times), "utf-8")


def add_timer(writer: Any, times: Times, name: str, step: str) -> None:
    """Replace a method of the writer by one that also measures its time, which the writer does not report."""
    method = getattr(writer, name)

    def measured() -> None:
        with times.of(step):
            method()

    setattr(writer, name, measured)


def report_build(folder: Path) -> None:
    """Print the times of the build, and the size of the library on disk."""
    times = json.loads((folder / "build.json").read_text("utf-8"))
    total, annotated, real = (int(times.get(name, 0)) for name in ("passages", "annotated", "real vectors"))
    encoding = times["encoding"]  # measured in the run that built the library
    lines = [["encoding (measured on some)", f"{1000 * encoding:.2f}", "", "100%"]]
    overhead = 0.0
    for name in ("annotation and segmentation", "storing", "words", "vectors"):
        each = times.get(name, 0.0) / (max(1, annotated) if name.startswith("annotation") else total)
        overhead += each
        lines.append([name, f"{1000 * each:.2f}", f"{each * total:,.0f}", f"{each / encoding:.1%}"])
    lines.append(
        ["all but encoding", f"{1000 * overhead:.2f}", f"{overhead * total:,.0f}", f"{overhead / encoding:.1%}"]
    )
    print(
        f"Built in commits of {BATCH}. capr segmented and annotated {annotated:,} passages; {total - annotated:,} are "
        f"joined from their sentences and keep their mentions. {real:,} vectors are those of their passages, the "
        "others are mixtures of two of them with noise.\n"
    )
    table("building|ms per passage|s in all|share of encoding", lines)
    library = folder / "library"
    disk = {"documents": sum(file.stat().st_size for file in library.glob("library.db*"))}
    disk |= {name: sum(file.stat().st_size for file in (library / name).iterdir()) for name in ("words", "vectors")}
    disk["all"] = sum(disk.values())
    lines = [[name, f"{size / 1e6:,.0f}", f"{size / total:,.0f}"] for name, size in disk.items()]
    table("disk|MB|bytes per passage", lines)


# --- searching ---


def searching(folder: Path) -> dict[str, Any]:
    """Measure the latencies of all modes and the memory, in a separate process."""
    questions = json.loads((folder / "questions.json").read_text("utf-8"))
    library = Library(folder / "library")
    measured: dict[str, Any] = {"latency": {}}
    total = library.index.view().postings.passages
    query = "SELECT value, COUNT(*) FROM passage_fact WHERE name = ? GROUP BY value ORDER BY 2 DESC LIMIT 1"
    section, count = library.index.store.database.execute(query, (ASPECT,)).fetchone() or ("plan", 0)
    for name, options in MODES.items():
        if options.get("rerank") and library.models.ranker is None:
            continue
        if name == "hybrid, section":
            options = {"filters": [f"section={section}"]}
            name = f"{name} ({100 * count / total:.0f}%)"
        mode_questions = questions[: WARM + FEW] if options.get("rerank") else questions
        options = {"rerank": False} | options
        measured["latency"][name] = latency_of(lambda q, o=options: library.search(q, K, **o), mode_questions)
        if name == "hybrid":
            measured["memory"] = memory()
    measured["memory of all"] = memory()
    return measured


def memory() -> tuple[float, float]:
    """Return the peak memory of this process, and its present memory without mapped files, in MB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 0.0
    values = dict(line.split(":", 1) for line in status.read_text().splitlines())  # ru_maxrss is inherited on Linux
    return int(values["VmHWM"].split()[0]) / 1024, int(values["RssAnon"].split()[0]) / 1024


def fresh(*command: str) -> str:
    """Run Python in a new process, and return what it prints."""
    return subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def measure(folder: Path, encoder: OnnxEncoder, questions: list[str], peers: bool) -> None:
    size = int(json.loads((folder / "build.json").read_text("utf-8"))["passages"])
    say(f"measuring {size:,} passages")
    print(f"\n## {size:,} passages\n", flush=True)
    report_build(folder)
    seconds = [float(fresh("-c", FIRST, str(folder / "library"), question)) for question in questions[:3]]
    measured = json.loads(fresh(__file__, "--searching", str(folder)))
    vectors = np.memmap(folder / "vectors.f32", np.float32, "r").reshape(-1, encoder.identity.dimensions)
    with Library(folder / "library") as library:
        queries = ParsedQuestions(questions, library, encoder)
        dense = [[match.order - 1 for match in library.index.dense(v, DEPTH, Filters())[:K]] for v in queries.vectors]
    truth = Truth(vectors, queries.vectors)
    floor = Floor(folder, vectors, queries, encoder, truth)
    lines = floor.lines(peers)
    least = floor.together()
    rows = [[f"capr {name}", *latency(times, least[0]), ""] for name, times in measured["latency"].items()]
    rows[1][-1] = truth.recalls(dense)
    rows.append([f"**floor: encoding, tantivy, faiss {floor.nearest[0]}**", *latency(least, least[0]), ""])
    if peers:
        lines += peer_lines(folder, vectors, queries, encoder, truth)
    rows += [[name, *latency(times, least[0]), recall] for name, times, recall in lines]
    heading = (
        f"one query, {len(questions) - WARM} questions|p50 ms|p95 ms|times the floor|recall@{K} (rounding / strict)"
    )
    table(heading, rows)
    (peak, anonymous), (later, _) = measured["memory"], measured["memory of all"]
    print(
        f"First answer of a new process: {min(seconds):.2f} s (longest of three {max(seconds):.2f} s). Memory: peak "
        f"{peak:,.0f} MB after hybrid search ({anonymous:,.0f} MB without files), {later:,.0f} MB after all modes.\n",
        flush=True,
    )


# --- tables ---


def latency(times: Latency, floor: float) -> list[str]:
    return [f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[0] / floor:.2f}"]


if __name__ == "__main__":
    main()
