"""Measure the peak memory and the speed of reading files of several sizes, each in a separate process.

    python bench/readers.py [--largest GB] [--folder DIR]

The benchmark writes tables like MIMIC's NOTEEVENTS.csv, and JSON like a FHIR Bundle and SQuAD, reads them, and deletes
them. The peak must not grow with the size of the file.
"""

from __future__ import annotations

import argparse
import base64
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from capr import samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--largest", type=float, default=2.0, help="size in GB of the largest table; JSON files have a tenth"
    )
    parser.add_argument("--folder", type=Path, help="where to write the files; default: the temporary folder")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        measure(arguments.read)
        return
    print(f"{'file':<24}{'size MB':>9}{'documents':>11}{'errors':>8}{'MB/s':>8}{'peak MB':>9}")
    for writer, largest in ((noteevents, 1.0), (bundle, 0.1), (squad, 0.1)):
        for share in (0.01, 0.1, 1.0):
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                path = writer(Path(folder), int(arguments.largest * largest * share * 1e9))
                subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)


def measure(path: Path) -> None:
    import capr

    start = time.perf_counter()
    reading = capr.read(path)
    for _ in reading:
        pass
    seconds = time.perf_counter() - start
    size = path.stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{path.name:<24}{size:>9,.0f}{reading.documents:>11,}{reading.errors:>8,}{size / seconds:>8.0f}{peak:>9.0f}",
        flush=True,
    )


def texts() -> Iterator[tuple[int, str]]:
    corpus = [document.text for document in samples.documents()]
    number = 0
    while True:
        for text in corpus:
            number += 1
            yield number, text


def noteevents(folder: Path, size: int) -> Path:
    path = folder / "NOTEEVENTS.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write('"ROW_ID","SUBJECT_ID","HADM_ID","CHARTDATE","CATEGORY","DESCRIPTION","TEXT"\n')
        for number, text in texts():
            quoted = text.replace('"', '""')
            file.write(f'{number},{number % 40000},{number},2151-07-16,"Nursing","Report","{quoted}"\n')
            if file.tell() >= size:
                return path
    return path


def bundle(folder: Path, size: int) -> Path:
    def entry(number: int, text: str) -> dict:
        attachment = {"contentType": "text/plain", "data": base64.b64encode(text.encode()).decode()}
        resource = {"resourceType": "DocumentReference", "id": str(number), "content": [{"attachment": attachment}]}
        return {"resource": resource}

    head = '{"resourceType": "Bundle", "type": "searchset", "entry": ['
    return write_json(folder / "bundle.json", size, head, entry, "]}")


def squad(folder: Path, size: int) -> Path:
    def paragraph(number: int, text: str) -> dict:
        question = {"id": str(number), "question": "What?", "answers": [{"text": text[:20], "answer_start": 0}]}
        return {"context": text, "qas": [question]}

    head = '{"version": "v2.0", "data": [{"title": "notes", "paragraphs": ['
    return write_json(folder / "squad.json", size, head, paragraph, "]}]}")


def write_json(path: Path, size: int, head: str, record: Callable[[int, str], dict], tail: str) -> Path:
    """Write a JSON file with as many records as fit into the size."""
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for number, text in texts():
            file.write(("," if number > 1 else "") + json.dumps(record(number, text)))
            if file.tell() >= size:
                break
        file.write(tail)
    return path


if __name__ == "__main__":
    main()
