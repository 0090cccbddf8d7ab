"""Damage files of a library, and call it."""

import os
import shutil

QUERIES = [
    ("aspirin after a heart attack", "hybrid"),
    ("dry cough", "lexical"),
    ('"left knee" -metformin', "lexical"),
    ("markd3v1p0", "lexical"),
    ("It speaks of a dry cough and fever.", "dense"),
    ("cough", "cdv"),
]


def rows(results):
    return [[hit.document, hit.passage.span.begin, hit.text] for hit in results]


def flip_bit(file, share):
    """Flip a bit of the byte at a share of the file's length."""
    data = bytearray(file.read_bytes())
    data[int(share * (len(data) - 1))] ^= 0x10
    file.write_bytes(data)


DAMAGES = {
    "first-bit": lambda file: flip_bit(file, 0),
    "third-bit": lambda file: flip_bit(file, 1 / 3),
    "middle-bit": lambda file: flip_bit(file, 0.5),
    "late-bit": lambda file: flip_bit(file, 0.9),
    "last-bit": lambda file: flip_bit(file, 1),
    "emptied": lambda file: os.truncate(file, 0),
    "halved": lambda file: os.truncate(file, file.stat().st_size // 2),
    "without-its-last-byte": lambda file: os.truncate(file, file.stat().st_size - 1),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "deleted": lambda file: file.unlink(),
}


def restore(sound, path):
    """Replace a library with a copy of the intact one."""
    shutil.rmtree(path)
    shutil.copytree(sound, path)


CALLS = [
    ("search", "cough"),
    ("stats",),
    ("verify",),
    ("add", ["new", 1]),
    ("document", "d1"),
    ("remove", "d1"),
    ("compact",),
]


def run_calls(starter, path, user=None, calls=CALLS):
    """Call methods of a library in a process; assert that none hangs or crashes, and return what it logged."""
    lines = starter.start("attempt", path=path, calls=calls, user=user).finish(timeout=60)
    crashed = {line["call"]: line["crashed"].strip().splitlines()[-1] for line in lines if "crashed" in line}
    assert crashed == {}
    assert len(lines) == len(calls)
    return lines
