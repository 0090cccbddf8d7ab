"""Gzip files that unpack to more than is allowed: what comes before is read, and memory does not grow."""

import gzip
import json
import tracemalloc

import pytest

from capr.documents import ReadError, Unpacked, read

LINES = [json.dumps({"id": f"n{i}", "text": "word " * 100}) + "\n" for i in range(2000)]


@pytest.fixture
def packed(tmp_path):
    """Keeps a text as a gzip file."""

    def keep(name, content):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content if isinstance(content, bytes) else content.encode()))
        return path

    return keep


def test_without_a_limit_all_is_read_and_counted(packed):
    unpacked = Unpacked()
    reading = read(packed("a.jsonl.gz", "".join(LINES)), unpacked=unpacked)
    assert len(list(reading)) == 2000
    assert reading.errors == 0
    assert unpacked.count == len("".join(LINES))
    assert len(list(read(packed("a.jsonl.gz", "".join(LINES))))) == 2000


def test_the_limit_itself_is_allowed(packed):
    path = packed("a.jsonl.gz", "".join(LINES))
    whole = len("".join(LINES))
    assert read_all(path, whole)[1] == []
    assert "allowed" in read_all(path, whole - 1)[1][0].fact


def test_what_is_before_the_limit_is_read(packed):
    documents, (problem,) = read_all(packed("a.jsonl.gz", "".join(LINES)), 500_000)
    assert 0 < len(documents) < 1000
    assert "more than the 500,000 bytes that are allowed" in problem.fact
    assert problem.line == len(documents)
    assert problem.fix == "unpack it, and read it in parts"


def test_files_are_counted_together(packed, tmp_path):
    paths = [packed(f"{name}.jsonl.gz", "".join(LINES[i : i + 100])) for i, name in ((0, "a"), (100, "b"), (200, "c"))]
    (tmp_path / "d.txt").write_text("A file that is not packed. " * 10_000)
    documents, problems = read_all([*paths, tmp_path / "d.txt"], 80_000)
    assert [problem.file for problem in problems] == [str(path) for path in paths[1:]]
    assert {"n0", "n99", "d.txt"} <= {document.id for document in documents}
    assert not {"n199", "n200"} & {document.id for document in documents}


@pytest.mark.parametrize(
    "format", ["text", "markdown", "html", "csv", "jsonl", "squad", "fhir", "hl7", "medquad", "pdf"]
)
def test_every_format_stops(packed, format):
    bomb = packed("bomb.gz", b"%PDF- " * 10 + b"x" * 3_000_000)
    tracemalloc.start()
    problems = []
    try:
        list(read(bomb, format=format, unpacked=Unpacked(100_000), on_problem=problems.append))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problems
    assert peak < 2_000_000


def test_a_format_that_looks_ahead_counts_once(packed):
    paragraphs = [{"context": f"Text {i}. " * 50, "qas": []} for i in range(500)]
    content = json.dumps({"data": [{"paragraphs": paragraphs, "title": "T"}]})  # the title comes last
    path = packed("a.json.gz", content)
    documents, problems = read_all(path, len(content), format="squad")
    assert ([document.title for document in documents], problems) == (["T"] * 500, [])
    documents, (problem,) = read_all(path, len(content) // 2, format="squad")
    assert 0 < len(documents) < 500
    assert "are allowed" in problem.fact


def test_strict_reading_stops_there(packed):
    with pytest.raises(ReadError, match=r"a\.txt\.gz: unpacked.*10 bytes.*Fix: "):
        list(read(packed("a.txt.gz", "word " * 10), strict=True, unpacked=Unpacked(10)))


def read_all(path, most, **options):
    reading = read(path, unpacked=Unpacked(most), **options)
    documents = list(reading)
    return documents, reading.problems
