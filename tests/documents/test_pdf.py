"""PDF: the text layer, page by page."""

import gzip

import pytest
from fpdf import FPDF

import capr

PAGES = ("ASSESSMENT:\nTemp 38.5 °C, 5 µg “ok”", "Plan: aspirin 81 mg")
TEXT = "ASSESSMENT:\nTemp 38.5 °C, 5 µg “ok”\fPlan: aspirin 81 mg"


def pdf(*pages: str | None, user: str | None = None, owner: str | None = None) -> bytes:
    """A PDF; None is a page with a picture only."""
    file = FPDF()
    file.set_compression(False)
    file.core_fonts_encoding = "cp1252"
    file.set_font("helvetica", size=12)
    for page in pages:
        file.add_page()
        if page is None:
            file.rect(10, 10, 50, 50, style="F")
        for line in (page or "").splitlines():
            file.cell(text=line, new_x="LMARGIN", new_y="NEXT")
    if owner:
        file.set_encryption(owner_password=owner, user_password=user)
    return bytes(file.output())


def test_pages_are_text_with_a_form_feed_between(read):
    (document,), problems, notices = read("letter.pdf", pdf(*PAGES))
    assert document.text == TEXT
    assert (document.id, document.title) == ("letter.pdf", "")
    assert document.metadata == {"source": "letter.pdf", "file": "letter.pdf"}
    assert [(document[page.span], page.value) for page in document.annotated("page")] == [
        ("ASSESSMENT:\nTemp 38.5 °C, 5 µg “ok”", {"number": 1}),
        ("Plan: aspirin 81 mg", {"number": 2}),
    ]
    assert not problems
    assert not notices


@pytest.mark.parametrize("name", ["letter.pdf", "LETTER.PDF", "scan", "letter.txt", "letter.pdf.gz"])
def test_recognised_by_content(tmp_path, name):
    content = pdf(*PAGES)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    reading = capr.read(tmp_path / name)
    assert [document.text for document in reading] == [TEXT]
    assert reading.formats == {"pdf": 1}


@pytest.mark.parametrize("before", [b"\r\n", b"\x00\x00", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_bytes_before_the_header_are_allowed(read, before):
    documents, problems, _ = read("letter.pdf", before + pdf(*PAGES))  # ISO 32000: within the first 1024
    assert [document.text for document in documents] == [TEXT]
    assert not problems


def test_forced(read):
    (document,), *_ = read("letter.bin", pdf("x"), format="pdf")
    assert document.text == "x"


def test_an_owner_password_alone_does_not_stop_reading(read):
    (document,), *_ = read("letter.pdf", pdf("owner only", owner="secret"))
    assert document.text == "owner only"


WHOLE = pdf(*PAGES)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (pdf(None), "no text layer"),
        (pdf("", ""), "no text layer"),
        (pdf("x", user="secret", owner="boss"), "protected by a password"),
        (WHOLE[: len(WHOLE) // 2], "not a readable PDF"),
        (WHOLE[:100], "not a readable PDF"),
        (b"%PDF-1.7\nhello", "not a readable PDF"),
    ],
)
def test_what_cannot_be_read_is_reported(read, content, fact):
    documents, (problem,), _ = read("a.pdf", content)
    assert documents == []
    assert fact in problem.fact


@pytest.mark.parametrize("content", [b"", b"not a pdf"])
def test_a_file_that_is_only_called_pdf_is_reported(read, content):
    documents, (problem,), _ = read("a.pdf", content)
    assert documents == []
    assert "not in a format that capr reads" in problem.fact
    documents, (problem,), _ = read("a.pdf", content, format="pdf")
    assert documents == []
    assert "not a readable PDF" in problem.fact


def test_truncated_gzip_is_reported(read):
    documents, (problem,), _ = read("a.pdf.gz", gzip.compress(WHOLE)[:-20])
    assert documents == []
    assert "gzip" in problem.fact


def test_a_page_that_cannot_be_loaded_is_reported_and_the_others_are_read(read):
    broken = WHOLE.replace(b"/Type /Page\n", b"/Type /Pxge\n", 1)
    assert broken != WHOLE
    (document,), (problem,), _ = read("a.pdf", broken)
    assert "aspirin 81 mg" in document.text
    assert "page 1" in f"{problem.fact} {problem.record}"
    (page,) = [page for page in document.annotated("page") if document[page.span]]
    assert page.value["number"] == 2


def test_a_scanned_page_among_others_is_told(read):
    (document,), problems, notices = read("a.pdf", pdf("one", None, "three"))
    assert document.text == "one\f\fthree"
    assert [page.value["number"] for page in document.annotated("page")] == [1, 2, 3]
    (told,) = [*problems, *notices]
    assert "2" in f"{told.fact} {told.record}"


def test_a_broken_file_does_not_stop_the_folder(tmp_path):
    (tmp_path / "a.pdf").write_bytes(WHOLE[:100])
    (tmp_path / "b.pdf").write_bytes(WHOLE.replace(b"/Type /Page\n", b"/Type /Pxge\n"))
    (tmp_path / "c.pdf").write_bytes(WHOLE)
    reading = capr.read(tmp_path)
    assert [document.id for document in reading if document.text.strip()] == ["c.pdf"]
    assert reading.errors >= 2
