"""How many sentences a discourse model encodes in a second, and how long a query takes.

python bench/discourse.py MODEL ARTICLES [--documents 200] [--threads 2]
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import capr
from capr.index.discourse import load_discourse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder that capr train cdv has made")
    parser.add_argument("articles", help="documents in any format")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    documents = list(islice(capr.read(given.articles), given.documents))
    begun = time.perf_counter()
    model = load_discourse(given.model, given.threads)
    print(f"loaded in {time.perf_counter() - begun:.2f} s")
    begun = time.perf_counter()
    count = sum(len(model.sentences(document)[0]) for document in documents)
    taken = time.perf_counter() - begun
    print(f"{count:,} sentences of {len(documents):,} documents in {taken:.2f} s: {count / taken:,.0f} a second")
    begun = time.perf_counter()
    for document in documents:
        model.query(document.title, "treatment")
    print(f"a query in {1000 * (time.perf_counter() - begun) / len(documents):.2f} ms")


if __name__ == "__main__":
    main()
