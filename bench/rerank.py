"""How many passages the ranker reads in a second, beside a 12-layer MiniLM in sentence-transformers with 32-bit floats.

python bench/rerank.py CHECKPOINT [--ranker FOLDER] [--passages 32] [--queries 12]

CHECKPOINT is a cross-encoder in the Hugging Face layout, such as ms-marco-MiniLM-L-12-v2; needs sentence-transformers.
Both read the same queries and passages, those that BM25 finds for the sample questions, in turns.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from capr import Library, samples
from capr.search.models import load_ranker, shipped
from capr.segment import under


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--ranker", type=Path, default=shipped("ranker"))
    parser.add_argument("--passages", type=int, default=32)
    parser.add_argument("--queries", type=int, default=12)
    given = parser.parse_args()
    import torch
    from sentence_transformers import CrossEncoder

    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    peer, ranker = CrossEncoder(given.checkpoint, device="cpu"), load_ranker(given.ranker)
    lists = candidates(given.queries, given.passages)
    read = {
        "capr": lambda query, texts: ranker.scores(query, texts),
        "sentence-transformers": lambda query, texts: peer.predict([(query, text) for text in texts]),
    }
    seconds = {name: [] for name in read}
    for turn, (query, texts) in enumerate([lists[0], *lists]):
        for name, scores in read.items():
            begun = time.perf_counter()
            scores(query, texts)
            if turn:  # the first is slower
                seconds[name].append(time.perf_counter() - begun)
    words = sum(len(text.split()) for _, texts in lists for text in texts) / sum(len(texts) for _, texts in lists)
    print(f"{len(lists)} queries, {given.passages} passages each, {words:.0f} words on average, {cores} cores")
    for name, times in seconds.items():
        print(f"{name:22} {median(times):.2f} s a query, {given.passages / median(times):.1f} pairs/s")
    ratios = [slow / fast for slow, fast in zip(seconds["sentence-transformers"], seconds["capr"], strict=True)]
    print(f"capr reads {median(ratios):.2f} times as many pairs ({min(ratios):.2f} to {max(ratios):.2f})")


def candidates(queries, passages):
    """Questions, and the passages that BM25 finds for each."""
    asked = [question.question for question in samples.questions() if question.question]
    with tempfile.TemporaryDirectory(prefix="capr-") as folder:
        library = Library(folder, encoder="none", ranker="none")
        library.add(samples.documents())
        lists = []
        for question in asked:
            hits = library.search(question.replace('"', " "), passages, mode="lexical").hits
            if len(hits) == passages:
                lists.append((question, [under(hit.text, hit.title) for hit in hits]))
            if len(lists) == queries:
                break
        library.close()
    return lists


if __name__ == "__main__":
    main()
