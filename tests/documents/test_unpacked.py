"""Gzip files that unpack to more than a limit: the records before it are read, and memory does not grow."""

import gzip
import json
import tracemalloc

import pytest

from capr.documents import ReadError, Unpacked, read

LINES = [json.dumps({"id": f"n{i}", "text": "word " * 100}) + "\n" for i in range(2000)]


@pytest.fixture
def write_gzip(tmp_path):
    """Return a function that writes a text to a gzip file and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content if isinstance(content, bytes) else content.encode()))
        return path

    return write


def test_without_a_limit_all_bytes_are_read_and_counted(write_gzip):
    unpacked = Unpacked()
    stream = read(write_gzip("a.jsonl.gz", "".join(LINES)), unpacked=unpacked)
    assert len(list(stream)) == 2000
    assert stream.errors == 0
    assert unpacked.count == len("".join(LINES))
    assert len(list(read(write_gzip("a.jsonl.gz", "".join(LINES))))) == 2000


def test_a_file_as_large_as_the_limit_is_allowed(write_gzip):
    path = write_gzip("a.jsonl.gz", "".join(LINES))
    size = len("".join(LINES))
    assert read_all(path, size)[1] == []
    assert "allowed" in read_all(path, size - 1)[1][0].fact


def test_the_records_before_the_limit_are_read(write_gzip):
    documents, (problem,) = read_all(write_gzip("a.jsonl.gz", "".join(LINES)), 500_000)
    assert 0 < len(documents) < 1000
    assert "more than the 500,000 bytes that are allowed" in problem.fact
    assert problem.line == len(documents)
    assert problem.fix == "unpack it, and read it in parts"


def test_the_bytes_of_several_files_add_up(write_gzip, tmp_path):
    paths = [
        write_gzip(f"{name}.jsonl.gz", "".join(LINES[i : i + 100])) for i, name in ((0, "a"), (100, "b"), (200, "c"))
    ]
    (tmp_path / "d.txt").write_text("A file without compression. " * 10_000)
    documents, problems = read_all([*paths, tmp_path / "d.txt"], 80_000)
    assert [problem.file for problem in problems] == [str(path) for path in paths[1:]]
    assert {"n0", "n99", "d.txt"} <= {document.id for document in documents}
    assert not {"n199", "n200"} & {document.id for document in documents}


@pytest.mark.parametrize(
    "format", ["text", "markdown", "html", "csv", "jsonl", "squad", "fhir", "hl7", "medquad", "pdf"]
)
def test_every_format_stops_at_the_limit(write_gzip, format):
    bomb = write_gzip("bomb.gz", b"%PDF- " * 10 + b"x" * 3_000_000)
    tracemalloc.start()
    problems = []
    try:
        list(read(bomb, format=format, unpacked=Unpacked(100_000), on_problem=problems.append))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problems
    assert peak < 2_000_000


def test_a_file_that_is_read_twice_counts_once(write_gzip):
    paragraphs = [{"context": f"Text {i}. " * 50, "qas": []} for i in range(500)]
    content = json.dumps({"data": [{"paragraphs": paragraphs, "title": "T"}]})  # the title comes last
    path = write_gzip("a.json.gz", content)
    documents, problems = read_all(path, len(content), format="squad")
    assert ([document.title for document in documents], problems) == (["T"] * 500, [])
    documents, (problem,) = read_all(path, len(content) // 2, format="squad")
    assert 0 < len(documents) < 500
    assert "are allowed" in problem.fact


def test_a_strict_reading_raises_an_error_at_the_limit(write_gzip):
    with pytest.raises(ReadError, match=r"a\.txt\.gz: the gzip files.*10 bytes.*Fix: "):
        list(read(write_gzip("a.txt.gz", "word " * 10), strict=True, unpacked=Unpacked(10)))


def read_all(path, limit, **options):
    stream = read(path, unpacked=Unpacked(limit), **options)
    documents = list(stream)
    return documents, stream.problems
