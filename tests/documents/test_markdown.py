"""Markdown: the exact text, with its headings as sections."""

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
def test_headings_are_sections_with_any_line_ends(read, line_end):
    (document,), *_ = read("note.md", NOTE.replace("\r\n", line_end))
    annotations = document.annotated("section")
    assert [annotation.value["heading"] for annotation in annotations] == [
        "Discharge summary",
        "History",
        "History | Family",
        "Plan",
    ]
    assert [annotation.value["level"] for annotation in annotations] == [1, 2, 3, 2]
    assert "".join(document[annotation.span] for annotation in annotations) == document.text
    assert document[annotations[-1].span] == "Plan\r\n----\r\n* rest  \r\n".replace("\r\n", line_end)
    assert document.text[annotations[-1].value["heading_end"] :].strip() == "* rest"


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
        ("# Anti-C#\n", ["Anti-C#"]),  # only marks after a space close a heading
        ("```ls``` lists files\n\n# H\n", ["H"]),  # inline code, not a fence
        ("# A\r## B\rx", ["A", "B"]),
        ("---\nauthor: Dr X\ndate: 2026-01-02\n---\n\n# Note\nx\n", ["Note"]),  # front matter
    ],
)
def test_only_headings_of_markdown_become_sections(read, text, headings):
    (document,), *_ = read("note.md", text)
    assert document.text == text
    assert [section.value["heading"].split(" | ")[-1] for section in document.annotated("section")] == headings


@pytest.mark.parametrize("name", ["a.md", "A.MARKDOWN", "a.mkd", "a.md.gz"])
def test_markdown_is_recognised_by_name(tmp_path, name):
    content = b"# A\nx\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    stream = capr.read(tmp_path / name)
    assert [document.title for document in stream] == ["A"]
    assert stream.formats == {"markdown": 1}


def test_a_clinical_note_with_number_signs_is_not_markdown(tmp_path):
    (tmp_path / "note.txt").write_text("# 1 Sepsis\n# 2 AKI\n")
    stream = capr.read(tmp_path / "note.txt")
    list(stream)
    assert stream.formats == {"text": 1}


def test_a_format_can_be_forced(read):
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


def test_windows_1252_is_read_with_a_notice(read):
    (document,), problems, (notice,) = read("a.md", "# Café – 38°\n".encode("cp1252"))
    assert document.title == "Café – 38°"
    assert not problems
    assert "Windows-1252" in notice.fact


def test_an_empty_file_is_a_document_and_a_notice(read):
    (document,), _, (notice,) = read("a.md", b"")
    assert (document.text, document.annotations) == ("", ())
    assert "empty" in notice.fact


@pytest.mark.parametrize("text", ["# a" + " " * 200_000 + "b\n", "a" + " " * 200_000 + "b\n", "#" * 200_000 + "\n"])
def test_long_runs_of_spaces_do_not_slow_the_reader_down(read, text):
    (document,), *_ = read("a.md", text)
    assert document.text == text
