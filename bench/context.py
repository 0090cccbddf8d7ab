"""Measure precision, recall and F1 of each property of clinical context on the marked cases.

python bench/context.py [--split dev|test] [--show]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from capr.annotate.context import FLAGS, context
from capr.documents import Span


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument("--show", action="store_true", help="print the mistakes; use it with dev only")
    arguments = parser.parse_args()
    path = Path(__file__).parents[1] / "tests" / "annotate" / "context" / f"{arguments.split}.jsonl"
    cases = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    counts = {flag: [0, 0, 0] for flag in FLAGS}  # right, predicted, marked
    for case in cases:
        text = case["text"].replace("«", "").replace("»", "")
        predicted = context(text, Span(case["text"].index("«"), case["text"].index("»") - 1), case["heading"])
        for flag, count in counts.items():
            count[0] += case[flag] and flag in predicted
            count[1] += flag in predicted
            count[2] += case[flag]
            if arguments.show and case[flag] != (flag in predicted):
                print(f"{'missed' if case[flag] else 'extra'} {flag}: {case['text']}")
    print(f"{len(cases)} cases ({arguments.split})")
    print(f"{'property':<14}{'marked':>7}{'precision':>11}{'recall':>9}{'F1':>8}")
    for flag, (right, predicted, marked) in counts.items():
        f1 = 2 * right / (predicted + marked)
        print(f"{flag:<14}{marked:>7}{right / predicted:>11.3f}{right / marked:>9.3f}{f1:>8.3f}")


if __name__ == "__main__":
    main()
