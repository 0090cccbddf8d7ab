"""Measure how many sentences a discourse model encodes in a second, and how long a query takes.

python bench/discourse.py MODEL ARTICLES [--documents 200] [--threads 2]
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import capr
from capr.runtime.discourse import OnnxDiscourse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder that capr train cdv made")
    parser.add_argument("articles", help="documents in any format")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    documents = list(islice(capr.read(arguments.articles), arguments.documents))
    start = time.perf_counter()
    model = OnnxDiscourse(arguments.model, arguments.threads)
    print(f"loaded in {time.perf_counter() - start:.2f} s")
    start = time.perf_counter()
    count = sum(len(model.sentences(document)[0]) for document in documents)
    seconds = time.perf_counter() - start
    print(f"{count:,} sentences of {len(documents):,} documents in {seconds:.2f} s: {count / seconds:,.0f} a second")
    start = time.perf_counter()
    for document in documents:
        model.query(document.title, "treatment")
    print(f"a query in {1000 * (time.perf_counter() - start) / len(documents):.2f} ms")


if __name__ == "__main__":
    main()
