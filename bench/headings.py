"""Measure precision and recall of section headings on MTSamples and ACI-Bench, which mark headings.

    python bench/headings.py ../shared/data [--split dev|test] [--show N]

Only `dev` served to tune the rules: the notes whose id has an even checksum. The published figures are those of `test`.
MTSamples lists the headings of each note; the benchmark ignores the 0.2% that do not begin a line, perhaps because a
number precedes them. In ACI-Bench the headings are the lines in capitals. A heading is right if it begins at the same
character.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import capr
from capr.documents import Document
from capr.segment import HeadingCounts, sections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument("--show", type=int, default=0, help="print the N most frequent mistakes")
    arguments = parser.parse_args()
    print(f"{'notes':<12}{'knowledge':<26}{'count':>7}{'headings':>10}{'precision':>11}{'recall':>9}{'F1':>8}")
    for name, load in (("mtsamples", mtsamples), ("aci_bench", aci_bench)):
        notes = list(load(arguments.data))
        selected = [pair for pair in notes if split_of(pair[0].id) == arguments.split]
        training = HeadingCounts.learn(document for document, _ in notes if split_of(document.id) == "dev")
        mistakes = Counter[str]()
        report(name, "lexicon", selected, lambda document: starts(document, None, 0), mistakes)
        for threshold in (2, 5, 20):
            report(
                name,
                f"counts, threshold {threshold}",
                selected,
                lambda document, t=threshold, c=training: starts(document, c, t),
                Counter(),
            )
        for mistake, count in mistakes.most_common(arguments.show):
            print(f"    {count:5}  {mistake}")


def report(name, knowledge, notes, find, mistakes) -> None:
    """Print a line of the table, and count the mistakes."""
    right = predicted = marked = 0
    for document, gold in notes:
        positions = find(document)
        right += len(gold & positions)
        predicted += len(positions)
        marked += len(gold)
        for position in gold ^ positions:
            line = document.text[position : position + 40].split("\n")[0]
            mistakes[f"{'missed' if position in gold else 'extra '} {line}"] += 1
    precision, recall = right / max(1, predicted), right / max(1, marked)
    f1 = 2 * right / max(1, predicted + marked)
    print(f"{name:<12}{knowledge:<26}{len(notes):>7}{marked:>10}{precision:>11.3f}{recall:>9.3f}{f1:>8.3f}")


def starts(document: Document, counts, threshold) -> set[int]:
    """Return the offsets of the outermost headings that capr finds; the data mark no headings inside sections."""
    offsets = set()
    for section in sections(document, counts, threshold or 1):
        if section.heading_span and section.heading and section.heading == section.top:
            offsets.add(document.text.index(section.heading, section.heading_span.begin))
    return offsets


def split_of(identifier: str) -> str:
    return "test" if zlib.crc32(identifier.encode()) % 2 else "dev"


def mtsamples(data: Path) -> Iterator[tuple[Document, set[int]]]:
    for document in capr.read(data / "mtsamples"):
        gold, position = set(), 0
        for heading, _ in document.metadata["sections"]:
            if not heading:
                continue
            pattern = re.compile(rf"^[ \t]*(?:\d+[.)][ \t]*)?({re.escape(heading)})", re.MULTILINE)
            if match := pattern.search(document.text, position):
                gold.add(match.start(1))
                position = match.end()
        yield document, gold


def aci_bench(data: Path) -> Iterator[tuple[Document, set[int]]]:
    files = sorted(path for path in (data / "aci_bench").glob("*.csv") if "metadata" not in path.name)
    for document in capr.read(files):
        lines = re.finditer(r"^[ \t]*([A-Z][A-Z /&]*[A-Z]):?[ \t]*$", document.text, re.MULTILINE)
        yield document, {line.start(1) for line in lines}


if __name__ == "__main__":
    main()
