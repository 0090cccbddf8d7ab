"""HTML: exactly the text that a browser shows."""

import gzip

import pytest

import capr

# A letter as a hospital information system saves it: head, styles, a table, entities, CRLF.
LETTER = """\
<!DOCTYPE html>\r
<html lang="en">\r
<head>\r
  <meta charset="utf-8">\r
  <title>Discharge&nbsp;letter &mdash;\r
    Ward 3</title>\r
  <style>h1 { color: red }</style>\r
  <script>if (a < b) document.write("<p>never</p>");</script>\r
</head>\r
<body>\r
<!-- printed 2026-01-02 -->\r
<h1>Discharge letter</h1>\r
<p>Temp&nbsp;38.5&deg;C, SpO2 &lt;92&#37;,\r
   said <b>&ldquo;ok&rdquo;</b> &#x1FA7A;, BP < 120</p>\r
<h2>Labs</h2>\r
<table><tr><th>Test</th><th>Value</th></tr><tr><td>Na</td><td>140</td></tr></table>\r
<h2>Plan</h2>\r
<ul><li>aspirin 81&nbsp;mg</li><li>rest<br>and fluids</li></ul>\r
<pre>  HR\t 80\n  RR\t 16</pre>\r
</body>\r
</html>\r
"""
VISIBLE_TEXT = (
    "Discharge letter\n\n"
    "Temp\u00a038.5°C, SpO2 <92%, said “ok” 🩺, BP < 120\n\n"
    "Labs\n\nTest\tValue\nNa\t140\n\n"
    "Plan\n\n- aspirin 81\u00a0mg\n- rest\nand fluids\n\n"
    "  HR\t 80\n  RR\t 16\n"
)


def body(markup: str) -> str:
    return f"<!DOCTYPE html><html><head><title>T</title></head><body>{markup}</body></html>"


def test_a_letter_has_the_text_that_a_browser_shows(read):
    (document,), problems, notices = read("letter.html", LETTER)
    assert document.text == VISIBLE_TEXT
    assert (document.id, document.title) == ("letter.html", "Discharge\u00a0letter — Ward 3")
    assert document.metadata == {"source": "letter.html", "file": "letter.html"}
    assert not problems
    assert not notices


def test_headings_are_sections(read):
    (document,), *_ = read("letter.html", LETTER)
    sections = document.annotated("section")
    assert [section.value["heading"] for section in sections] == ["Discharge letter", "Labs", "Plan"]
    assert [section.value["level"] for section in sections] == [1, 2, 2]
    assert document[sections[1].span] == "Labs\n\nTest\tValue\nNa\t140\n\n"
    assert "".join(document[section.span] for section in sections) == document.text
    labs = sections[1]
    assert document.text[labs.span.begin : labs.value["heading_end"]] == "Labs"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.htm", b"<p>x"),
        ("A.XHTML", b"<p>x</p>"),
        ("page", b"\r\n <!doctype HTML><p>x"),
        (
            "page",
            b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><body><p>x</p></body></html>',
        ),
        ("a.html.gz", gzip.compress(b"<p>x", mtime=0)),
        ("a.html", "<p>x".encode("utf-16")),
    ],
)
def test_html_is_recognised_by_name_and_content(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    stream = capr.read(tmp_path / name)
    assert [document.text for document in stream] == ["x\n"]
    assert stream.formats == {"html": 1}


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("notes.jsonl", '{"id": "1", "text": "<html><p>a</p></html>"}\n{"id": "2", "text": "b"}\n', "jsonl"),
        ("note.txt", "The portal showed <html> tags.\n\nBP  120\n", "text"),
        ("note.md", "# Error\n\nIt printed `<html>`.\n", "markdown"),
    ],
)
def test_other_formats_that_mention_html_are_not_html(tmp_path, name, content, format):
    (tmp_path / name).write_text(content)
    stream = capr.read(tmp_path / name)
    list(stream)
    assert set(stream.formats) == {format}


def test_a_format_can_be_forced(read):
    (document,), *_ = read("export.dat", "<p>a</p><p>b</p>", format="html")
    assert document.text == "a\n\nb\n"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<b>Na</b> <i>140</i>, <b>K</b>4", "Na 140, K4\n"),
        ("<div>a</div><div>b</div>", "a\nb\n"),
        ("a&nbsp;&nbsp;b\u2003c", "a\u00a0\u00a0b\u2003c\n"),
        ("<p>SpO2 <92% &ltother &bogus; &#150;", "SpO2 <92% <other &bogus; –\n"),
        ("<p>one<p>two", "one\n\ntwo\n"),
        ("x<br><br>y", "x\n\ny\n"),
        ("<h2>Findings<p>clear", "Findings\n\nclear\n"),
        ("<ul><li><p>one</p></li><li>two</li></ul>", "- one\n\n- two\n"),  # as Word writes lists
        ("<p><![CDATA[BP < 120]]></p>", "BP < 120\n"),  # XHTML
        ("<table><tr><td></td><td>5</td></tr><tr><td>Na</td><td>140</td></tr></table>", "\t5\nNa\t140\n"),
        ("<noscript>a<br>b</noscript><template><ul><li>x</li></ul></template>after", "after\n"),
    ],
)
def test_real_world_markup_is_read(read, markup, text):
    (document,), problems, _ = read("a.html", body(markup))
    assert document.text == text
    assert not problems


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><head><title>T</title><meta charset=utf-8><p>Hello",  # HTML allows the missing tags
        "<!DOCTYPE html><title>T</title><p>Hello",
        "<html><head><title>T</title><body>Hello</html>",
        body("<svg><title>an icon</title></svg><p>Hello"),
    ],
)
def test_the_title_is_not_part_of_the_text(read, page):
    (document,), *_ = read("a.html", page)
    assert (document.title, document.text) == ("T", "Hello\n")


@pytest.mark.parametrize(
    "markup",
    [
        "<![if !mso]>",
        "<![foo[ x ]]>",
        "<![ x>",
        "<!ENTITY a>",
        "<?php x ?>",
        "</>",
        "</p></div></head>",
        "<!>",
    ],
)
def test_broken_declarations_do_not_stop_the_reader(read, markup):
    (document,), *_ = read("a.html", body(f"before {markup} after"))
    assert document.text.startswith("before")
    assert document.text.endswith("after\n")


@pytest.mark.parametrize("markup", ["<svg><p>lost", "<script>var x = 1; <p>lost", "<template>lost", "<noscript>lost"])
def test_text_hidden_by_an_unclosed_element_is_reported(read, markup):
    (document,), problems, notices = read("a.html", body(f"before {markup}"))
    assert document.text.startswith("before")
    assert "lost" in document.text or problems or notices


def test_an_undefined_byte_is_reported(read):
    documents, (problem,), _ = read("a.html", b"<html><body>bad \x81 byte</body></html>")
    assert documents == []
    assert problem.record == "a.html"
    assert "byte 0x81 of the text is neither UTF-8 nor Windows-1252" in problem.fact


def test_windows_1252_is_read_with_a_notice(read):
    (document,), problems, (notice,) = read("a.html", "<html><p>38° – café</p></html>".encode("cp1252"))
    assert document.text == "38° – café\n"
    assert not problems
    assert "Windows-1252" in notice.fact


def test_the_charset_of_a_page_is_used(read):
    page = '<html><head><meta charset="windows-1251"></head><body>Пациент</body></html>'.encode("cp1251")
    documents, problems, _ = read("a.html", page)
    assert problems or documents[0].text == "Пациент\n"  # not Ïàöèåíò


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("a.html.gz", gzip.compress(LETTER.encode(), mtime=0)[:-30], "gzip data ends too early"),
        ("a.html", LETTER.encode("utf-16")[:-3], "it begins as utf-16-le but is not"),
    ],
)
def test_damaged_files_are_reported(read, name, content, fact):
    documents, (problem,), _ = read(name, content)
    assert documents == []
    assert fact in problem.fact


@pytest.mark.parametrize("page", ["", "<html></html>", body("<p>&#32;</p>"), body("<img src='scan.png'>")])
def test_a_page_without_words_is_reported_as_empty(read, page):
    (document,), problems, (notice,) = read("a.html", page)
    assert document.text.strip() == ""
    assert not problems
    assert "empty" in notice.fact
