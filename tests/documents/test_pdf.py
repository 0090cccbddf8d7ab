"""PDF: the text layer, page by page."""

import gzip

import pytest
from fpdf import FPDF

import capr

PAGES = ("ASSESSMENT:\nTemp 38.5 °C, 5 µg “ok”", "Plan: aspirin 81 mg")
TEXT = "ASSESSMENT:\nTemp 38.5 °C, 5 µg “ok”\fPlan: aspirin 81 mg"


def make_pdf(*pages: str | None, user: str | None = None, owner: str | None = None) -> bytes:
    """Return a PDF. None stands for a page without text."""
    document = FPDF()
    document.set_compression(False)
    document.core_fonts_encoding = "cp1252"
    document.set_font("helvetica", size=12)
    for page in pages:
        document.add_page()
        if page is None:
            document.rect(10, 10, 50, 50, style="F")
        for line in (page or "").splitlines():
            document.cell(text=line, new_x="LMARGIN", new_y="NEXT")
    if owner:
        document.set_encryption(owner_password=owner, user_password=user)
    return bytes(document.output())


def test_a_form_feed_separates_pages(read):
    (document,), problems, notices = read("letter.pdf", make_pdf(*PAGES))
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
def test_pdf_is_recognised_by_content(tmp_path, name):
    content = make_pdf(*PAGES)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    stream = capr.read(tmp_path / name)
    assert [document.text for document in stream] == [TEXT]
    assert stream.formats == {"pdf": 1}


@pytest.mark.parametrize("prefix", [b"\r\n", b"\x00\x00", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_bytes_before_the_header_are_allowed(read, prefix):
    # ISO 32000 allows a header within the first 1024 bytes.
    documents, problems, _ = read("letter.pdf", prefix + make_pdf(*PAGES))
    assert [document.text for document in documents] == [TEXT]
    assert not problems


def test_a_format_can_be_forced(read):
    (document,), *_ = read("letter.bin", make_pdf("x"), format="pdf")
    assert document.text == "x"


def test_an_owner_password_alone_does_not_stop_reading(read):
    (document,), *_ = read("letter.pdf", make_pdf("owner only", owner="secret"))
    assert document.text == "owner only"


COMPLETE_PDF = make_pdf(*PAGES)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (make_pdf(None), "no text layer"),
        (make_pdf("", ""), "no text layer"),
        (make_pdf("x", user="secret", owner="boss"), "protected by a password"),
        (COMPLETE_PDF[: len(COMPLETE_PDF) // 2], "not a readable PDF"),
        (COMPLETE_PDF[:100], "not a readable PDF"),
        (b"%PDF-1.7\nhello", "not a readable PDF"),
    ],
)
def test_an_unreadable_pdf_is_reported(read, content, fact):
    documents, (problem,), _ = read("a.pdf", content)
    assert documents == []
    assert fact in problem.fact


@pytest.mark.parametrize("content", [b"", b"not a pdf"])
def test_a_pdf_name_without_pdf_content_is_reported(read, content):
    documents, (problem,), _ = read("a.pdf", content)
    assert documents == []
    assert "not in a format that capr reads" in problem.fact
    documents, (problem,), _ = read("a.pdf", content, format="pdf")
    assert documents == []
    assert "not a readable PDF" in problem.fact


def test_truncated_gzip_is_reported(read):
    documents, (problem,), _ = read("a.pdf.gz", gzip.compress(COMPLETE_PDF)[:-20])
    assert documents == []
    assert "gzip" in problem.fact


def test_a_damaged_page_is_reported_and_the_other_pages_are_read(read):
    broken = COMPLETE_PDF.replace(b"/Type /Page\n", b"/Type /Pxge\n", 1)
    assert broken != COMPLETE_PDF
    (document,), (problem,), _ = read("a.pdf", broken)
    assert "aspirin 81 mg" in document.text
    assert "page 1" in f"{problem.fact} {problem.record}"
    (page,) = [page for page in document.annotated("page") if document[page.span]]
    assert page.value["number"] == 2


def test_a_scanned_page_among_others_is_reported(read):
    (document,), problems, notices = read("a.pdf", make_pdf("one", None, "three"))
    assert document.text == "one\f\fthree"
    assert [page.value["number"] for page in document.annotated("page")] == [1, 2, 3]
    (report,) = [*problems, *notices]
    assert "2" in f"{report.fact} {report.record}"


def test_a_broken_file_does_not_stop_the_folder(tmp_path):
    (tmp_path / "a.pdf").write_bytes(COMPLETE_PDF[:100])
    (tmp_path / "b.pdf").write_bytes(COMPLETE_PDF.replace(b"/Type /Page\n", b"/Type /Pxge\n"))
    (tmp_path / "c.pdf").write_bytes(COMPLETE_PDF)
    stream = capr.read(tmp_path)
    assert [document.id for document in stream if document.text.strip()] == ["c.pdf"]
    assert stream.errors >= 2
