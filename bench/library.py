"""Search in libraries of several sizes: time, memory, disk and recall, beside what it cannot be faster than, and peers.

python bench/library.py [--encoder FOLDER] [--sizes 10000 100000] [--data ../shared/data] [--work FOLDER]

The floor is what any such search has to do: encode the query, ask tantivy for the words and faiss for the vector.
Peers, if installed: pip install bm25s numba lancedb sentence-transformers (and --torch FOLDER, the model for the last)
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
from peers import ASKED, DEPTH, WARM, Asked, Floor, Latency, others, timed

from capr.index import EmbeddedIndex, Filters, OnnxEncoder
from capr.index.filters import ASPECT
from capr.search import Library
from capr.search.library import BATCH
from capr.search.models import shipped

MODES: dict[str, dict[str, Any]] = {
    "lexical": {"mode": "lexical"},
    "dense": {"mode": "dense"},
    "hybrid": {},
    "hybrid, one patient": {"filters": ["patient=p1"]},
    "hybrid, note type (20 %)": {"filters": ["type=Discharge summary"]},
    "hybrid, one year (10 %)": {"filters": ["date=2019"]},
    "hybrid, section": {},
    "hybrid, grouped by patient": {"group": "patient"},
    "hybrid, the best 32 read by the ranker": {"rerank": True},
}
FEW = 30  # questions, as a ranker takes its time
FIRST = """
import sys, time
start = time.perf_counter()
import capr
from capr.search import Library
found = Library(sys.argv[1]).search(sys.argv[2], rerank=False)
print(time.perf_counter() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--encoder", type=Path, default=shipped("encoder"), help="folder; that which ships if not given"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 200_000, 1_000_000])
    parser.add_argument("--data", type=Path, help="folder of the public data sets; made-up texts without it")
    parser.add_argument("--passages", type=Path, help="instead: lines of JSON, [document, heading, text]")
    parser.add_argument("--vectors", type=Path, action="append", default=[], help="of the passages, as .npy")
    parser.add_argument("--queries", type=Path, help="a JSON list of questions")
    parser.add_argument("--encode", type=int, default=2000, help="passages that are really encoded")
    parser.add_argument("--work", type=Path, help="where to keep what was built, to use it again")
    parser.add_argument("--torch", type=Path, help="folder of the same model for sentence-transformers")
    parser.add_argument("--all-peers", action="store_true", help="peers and graph also beyond 100,000 passages")
    parser.add_argument("--searching", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.searching:
        print(json.dumps(searching(given.searching)))
    elif given.work:
        run(given, given.work)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run(given, Path(folder))


def run(given: argparse.Namespace, work: Path) -> None:
    encoder = OnnxEncoder(given.encoder)
    questions = corpus.questions(given.queries, given.data, WARM + ASKED)
    first = list(islice(corpus.rows(given.passages, given.data), given.encode))
    each, encoded = encoding(encoder, first, questions, given.torch)
    vectors = corpus.real_vectors(given.vectors, first, encoded)
    for size in given.sizes:
        folder = work / str(size)
        if not (folder / "build.json").exists():
            rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            build(folder, size, corpus.rows(given.passages, given.data), vectors, encoder, each)
        (folder / "questions.json").write_text(json.dumps(questions), "utf-8")
        measure(folder, encoder, questions, given.all_peers or size <= 100_000)


def encoding(
    encoder: OnnxEncoder, rows: Sequence[corpus.Row], questions: list[str], torch: Path | None
) -> tuple[float, np.ndarray]:
    """Prints how fast encoders are; gives the seconds that capr's takes for a passage, and the vectors."""
    texts = ["\n".join(part for part in row[1:] if part) for row in rows]
    say(f"encoding {len(texts):,} passages")
    encoder.passages(texts[:32])
    start = time.perf_counter()
    vectors = [encoder.passages(texts[begin : begin + BATCH]) for begin in range(0, len(texts), BATCH)]
    each = (time.perf_counter() - start) / len(texts)
    query = timed(encoder.query, questions)
    lines = [["capr (ONNX)", f"{1 / each:,.0f}", f"{query[0]:.1f}", f"{query[1]:.1f}", ""]]
    try:
        from sentence_transformers import SentenceTransformer

        if torch is None:
            raise ImportError
        model = SentenceTransformer(str(torch), device="cpu")
        model.encode(texts[:32])
        some = texts[:500]
        start = time.perf_counter()
        model.encode(some, batch_size=32)
        theirs = (time.perf_counter() - start) / len(some)
        one = timed(model.encode, questions)
        ratio = f"{theirs / each:.2f} / {one[0] / query[0]:.2f}"
        lines.append(["sentence-transformers", f"{1 / theirs:,.0f}", f"{one[0]:.1f}", f"{one[1]:.1f}", ratio])
    except ImportError:
        say("sentence-transformers is not installed, or --torch is not given: skipped")
    print("\n## Encoding\n")
    table("encoder|passages/s|query p50 ms|query p95 ms|times as long as capr (passage / query)", lines)
    return each, np.concatenate(vectors)


# --- building ---


def build(
    folder: Path, size: int, rows: Iterable[corpus.Row], vectors: corpus.Vectors, encoder: OnnxEncoder, each: float
) -> None:
    """Keeps a library, its vectors and the times that it took."""
    say(f"building {size:,} passages")
    times, made, real = Times(), 0, 0
    index = EmbeddedIndex(folder / "library", create=True)
    with index.writing() as writer, (folder / "vectors.f32").open("wb") as file:
        timer(writer, times, "_catch_up_words", "words")
        timer(writer, times, "_catch_up_vectors", "vectors")
        timer(writer, times, "close", "merging")
        timer(writer, times, "commit", "committing")
        writer.set_encoder(encoder.identity)
        writer.commit()
        waiting = 0
        for one, places in corpus.documents(rows, size, times):
            given = vectors.of(places)
            real += vectors.known(places)
            file.write(given.tobytes())
            writer.add(replace(one, vectors=list(given)))
            waiting += len(places)
            made += len(places)
            if waiting >= BATCH or made >= size:
                writer.commit()
                waiting = 0
                if made // 50_000 != (made - BATCH) // 50_000:
                    say(f"{made:,} passages", {name: round(seconds) for name, seconds in times.items()})
    index.close()
    times["storing"] = times.pop("committing") - times["words"] - times["vectors"]
    times["words"] += times.pop("merging")
    times |= {"passages": made, "real vectors": real, "encoding": each}
    (folder / "build.json").write_text(json.dumps(times), "utf-8")


def timer(writer: Any, times: Times, method: str, what: str) -> None:
    """Times a step of the writer, which has no other way to tell."""
    step = getattr(writer, method)

    def measured() -> None:
        with times.of(what):
            step()

    setattr(writer, method, measured)


def built(folder: Path) -> None:
    times = json.loads((folder / "build.json").read_text("utf-8"))
    total, annotated, real = (int(times.get(name, 0)) for name in ("passages", "annotated", "real vectors"))
    encoding = times["encoding"]  # measured in the run that built the library
    lines = [["encoding (measured on some)", f"{1000 * encoding:.2f}", "", "100 %"]]
    overhead = 0.0
    for name in ("annotation and segmentation", "storing", "words", "vectors"):
        each = times.get(name, 0.0) / (max(1, annotated) if name.startswith("annotation") else total)
        overhead += each
        lines.append([name, f"{1000 * each:.2f}", f"{each * total:,.0f}", f"{each / encoding:.1%}"])
    lines.append(
        ["all but encoding", f"{1000 * overhead:.2f}", f"{overhead * total:,.0f}", f"{overhead / encoding:.1%}"]
    )
    print(
        f"Built in commits of {BATCH}. {annotated:,} passages were cut and annotated by capr, {total - annotated:,} "
        f"are joined of their sentences and keep their mentions. {real:,} vectors are those of their "
        "passages, the others mixtures of two of them with noise.\n"
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
    """In a process of its own: latencies of all modes, and the memory that it took."""
    questions = json.loads((folder / "questions.json").read_text("utf-8"))
    library = Library(folder / "library")
    found: dict[str, Any] = {"latency": {}}
    total = library.index.view().postings.passages
    query = "SELECT value, COUNT(*) FROM passage_fact WHERE name = ? GROUP BY value ORDER BY 2 DESC LIMIT 1"
    section, count = library.index.store.database.execute(query, (ASPECT,)).fetchone() or ("plan", 0)
    for name, options in MODES.items():
        if options.get("rerank") and library.models.ranker is None:
            continue
        if name == "hybrid, section":
            options = {"filters": [f"section={section}"]}
            name = f"{name} ({100 * count / total:.0f} %)"
        some = questions[: WARM + FEW] if options.get("rerank") else questions
        asking = {"rerank": False} | options
        found["latency"][name] = timed(lambda question, o=asking: library.search(question, K, **o), some)
        if name == "hybrid":
            found["memory"] = memory()
    found["memory of all"] = memory()
    return found


def memory() -> tuple[float, float]:
    """The peak of this process, and what of it now does not come from files, in MB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 0.0
    said = dict(line.split(":", 1) for line in status.read_text().splitlines())  # ru_maxrss is inherited on Linux
    return int(said["VmHWM"].split()[0]) / 1024, int(said["RssAnon"].split()[0]) / 1024


def fresh(*command: str) -> str:
    return subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def measure(folder: Path, encoder: OnnxEncoder, questions: list[str], peers: bool) -> None:
    size = int(json.loads((folder / "build.json").read_text("utf-8"))["passages"])
    say(f"measuring {size:,} passages")
    print(f"\n## {size:,} passages\n", flush=True)
    built(folder)
    opened = [float(fresh("-c", FIRST, str(folder / "library"), question)) for question in questions[:3]]
    found = json.loads(fresh(__file__, "--searching", str(folder)))
    vectors = np.memmap(folder / "vectors.f32", np.float32, "r").reshape(-1, encoder.identity.dimensions)
    with Library(folder / "library") as library:
        asked = Asked(questions, library, encoder)
        dense = [[f.number - 1 for f in library.index.dense(v, DEPTH, Filters())[:K]] for v in asked.vectors]
    truth = Truth(vectors, asked.vectors)
    floor = Floor(folder, vectors, asked, encoder, truth)
    lines = floor.lines(peers)
    least = floor.together()
    rows = [[f"capr {name}", *latency(times, least[0]), ""] for name, times in found["latency"].items()]
    rows[1][-1] = truth.told(dense)
    rows.append([f"**floor: encoding, tantivy, faiss {floor.nearest[0]}**", *latency(least, least[0]), ""])
    rows += [[name, *latency(times, least[0]), told] for name, times, told in lines]
    if peers:
        rows += [
            [name, *latency(t, least[0]), told] for name, t, told in others(folder, vectors, asked, encoder, truth)
        ]
    heading = (
        f"one query, {len(questions) - WARM} questions|p50 ms|p95 ms|times the floor|recall@{K} (rounding / strict)"
    )
    table(heading, rows)
    (peak, own), (later, _) = found["memory"], found["memory of all"]
    print(
        f"First answer of a new process: {min(opened):.2f} s (longest of three {max(opened):.2f} s). Memory: peak "
        f"{peak:,.0f} MB after hybrid search, {own:,.0f} MB of them not of files; {later:,.0f} MB after all modes.\n",
        flush=True,
    )


# --- tables ---


def latency(times: Latency, floor: float) -> list[str]:
    return [f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[0] / floor:.2f}"]


def table(heading: str, lines: Iterable[Sequence[str]]) -> None:
    names = heading.split("|")
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")
    print(flush=True)


if __name__ == "__main__":
    main()
