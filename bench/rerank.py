"""Measure how many passages the ranker reads in a second, compared with sentence-transformers and 32-bit floats.

python bench/rerank.py CHECKPOINT [--ranker FOLDER] [--passages 32] [--queries 12]

CHECKPOINT is a cross-encoder in the Hugging Face layout, such as ms-marco-MiniLM-L-12-v2 with its 12 layers; needs
sentence-transformers. The two models take turns to read the same queries and passages: the sample questions, and the
passages that BM25 finds for them.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from capr import Library, samples
from capr.runtime.kinds import load_model
from capr.runtime.shipped import shipped
from capr.segment import with_labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--ranker", type=Path, default=shipped("ranker"))
    parser.add_argument("--passages", type=int, default=32)
    parser.add_argument("--queries", type=int, default=12)
    arguments = parser.parse_args()
    import torch
    from sentence_transformers import CrossEncoder

    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    peer, ranker = CrossEncoder(arguments.checkpoint, device="cpu"), load_model(arguments.ranker, "ranker")
    queries = candidates(arguments.queries, arguments.passages)
    rankers = {
        "capr": lambda query, texts: ranker.scores(query, texts),
        "sentence-transformers": lambda query, texts: peer.predict([(query, text) for text in texts]),
    }
    seconds = {name: [] for name in rankers}
    for turn, (query, texts) in enumerate([queries[0], *queries]):
        for name, score in rankers.items():
            start = time.perf_counter()
            score(query, texts)
            if turn:  # the first turn is slower
                seconds[name].append(time.perf_counter() - start)
    passages = [text for _, texts in queries for text in texts]
    words = sum(len(text.split()) for text in passages) / len(passages)
    print(f"{len(queries)} queries, {arguments.passages} passages each, {words:.0f} words on average, {cores} cores")
    for name, times in seconds.items():
        print(f"{name:22} {median(times):.2f} s a query, {arguments.passages / median(times):.1f} pairs/s")
    ratios = [slow / fast for slow, fast in zip(seconds["sentence-transformers"], seconds["capr"], strict=True)]
    print(f"capr reads {median(ratios):.2f} times as many pairs ({min(ratios):.2f} to {max(ratios):.2f})")


def candidates(queries, passages):
    """Return questions, each with the passages that BM25 finds for it."""
    questions = [question.question for question in samples.questions() if question.question]
    with tempfile.TemporaryDirectory(prefix="capr-") as folder:
        library = Library(folder, encoder="none", ranker="none")
        library.add(samples.documents())
        candidate_lists = []
        for question in questions:
            hits = library.search(question.replace('"', " "), passages, mode="lexical").hits
            if len(hits) == passages:
                candidate_lists.append((question, [with_labels(hit.text, hit.title) for hit in hits]))
            if len(candidate_lists) == queries:
                break
        library.close()
    return candidate_lists


if __name__ == "__main__":
    main()
