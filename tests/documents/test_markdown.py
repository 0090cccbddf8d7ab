"""Markdown: the text as it stands, with its headings as sections."""

import gzip

import pytest

import capr

NOTE = (
    "# Discharge summary\r\n"
    "\r\n"
    "Seen 2026-01-02, said \u201cok\u201d 🩺,\u00a0temp 38.5 °C.\r\n"
    "\r\n"
    "## History ##\r\n"
    "\tNo fever.\r\n"
    "```\r\n"
    "# not a heading\r\n"
    "```\r\n"
    "### Family\r\n"
    "None #known.\r\n"
    "\r\n"
    "Plan\r\n"
    "----\r\n"
    "* rest  \r\n"
)


def sections(document):
    return [(section.value["heading"], document[section.span]) for section in document.annotated("section")]


def test_every_character_is_kept(read):
    (document,), problems, notices = read("note.md", NOTE)
    assert document.text == NOTE
    assert (document.id, document.title) == ("note.md", "Discharge summary")
    assert document.metadata == {"source": "note.md", "file": "note.md"}
    assert not problems
    assert not notices


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
def test_headings_are_sections_whatever_the_line_ends(read, line_end):
    (document,), *_ = read("note.md", NOTE.replace("\r\n", line_end))
    found = document.annotated("section")
    assert [section.value["heading"] for section in found] == [
        "Discharge summary",
        "History",
        "History | Family",
        "Plan",
    ]
    assert [section.value["level"] for section in found] == [1, 2, 3, 2]
    assert "".join(document[section.span] for section in found) == document.text
    assert document[found[-1].span] == "Plan\r\n----\r\n* rest  \r\n".replace("\r\n", line_end)
    assert document.text[found[-1].value["heading_end"] :].strip() == "* rest"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("Title\n=====\nx\n\nSub\n---\ny", ["Title", "Sub"]),
        ("before\n\n# A\nx", ["A"]),
        ("# A\n\n# A\n", ["A", "A"]),
        ("#tag\n# \n#\n####### seven\n    # code\n", []),
        ("~~~\n# no\n~~~~\n# yes\n", ["yes"]),
        ("```\n# never closed\n", []),
        ("> quote\n---\n- item\n---\n| a |\n|---|\n\n---\n", []),
        ("# Anti-C#\n", ["Anti-C#"]),  # only marks after a blank close a heading
        ("```ls``` lists files\n\n# H\n", ["H"]),  # code in a line, not a fence
        ("# A\r## B\rx", ["A", "B"]),
        ("---\nauthor: Dr X\ndate: 2026-01-02\n---\n\n# Note\nx\n", ["Note"]),  # front matter
    ],
)
def test_what_is_a_heading(read, text, headings):
    (document,), *_ = read("note.md", text)
    assert document.text == text
    assert [section.value["heading"].split(" | ")[-1] for section in document.annotated("section")] == headings


@pytest.mark.parametrize("name", ["a.md", "A.MARKDOWN", "a.mkd", "a.md.gz"])
def test_recognised_by_name(tmp_path, name):
    content = b"# A\nx\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    reading = capr.read(tmp_path / name)
    assert [document.title for document in reading] == ["A"]
    assert reading.formats == {"markdown": 1}


def test_a_clinical_note_with_number_signs_is_not_markdown(tmp_path):
    (tmp_path / "note.txt").write_text("# 1 Sepsis\n# 2 AKI\n")
    reading = capr.read(tmp_path / "note.txt")
    list(reading)
    assert reading.formats == {"text": 1}


def test_forced(read):
    (document,), *_ = read("note.txt", "# Sepsis\nx\n# AKI\ny\n", format="markdown")
    assert sections(document) == [("Sepsis", "# Sepsis\nx\n"), ("AKI", "# AKI\ny\n")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_does_not_hide_the_first_heading(read, encoding):
    (document,), *_ = read("note.md", NOTE.encode(encoding))
    assert document.text == NOTE
    assert document.title == "Discharge summary"


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("a.md", b"# bad \x81\n", "byte 0x81 of the title is neither UTF-8 nor Windows-1252"),
        ("a.md", b"# A\n\nbad \x8d\n", "byte 0x8D of the text is neither UTF-8 nor Windows-1252"),
        ("a.md", "# A".encode("utf-16")[:-1], "it begins as utf-16-le but is not"),
        ("a.md.gz", gzip.compress(NOTE.encode(), mtime=0)[:-20], "gzip data ends too early"),
        ("a.md.gz", b"\x1f\x8b\x08\x00nonsense", "gzip data ends too early or is damaged"),
    ],
)
def test_broken_files_are_reported(read, name, content, fact):
    documents, (problem,), _ = read(name, content)
    assert documents == []
    assert fact in problem.fact


def test_windows_1252_is_read_and_said(read):
    (document,), problems, (notice,) = read("a.md", "# Café – 38°\n".encode("cp1252"))
    assert document.title == "Café – 38°"
    assert not problems
    assert "Windows-1252" in notice.fact


def test_an_empty_file_is_a_document_and_a_notice(read):
    (document,), _, (notice,) = read("a.md", b"")
    assert (document.text, document.annotations) == ("", ())
    assert "empty" in notice.fact


@pytest.mark.parametrize("text", ["# a" + " " * 200_000 + "b\n", "a" + " " * 200_000 + "b\n", "#" * 200_000 + "\n"])
def test_long_runs_of_blanks_do_not_stall_the_reader(read, text):
    (document,), *_ = read("a.md", text)
    assert document.text == text
