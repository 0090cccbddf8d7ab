"""Plain text and folders of it: to the character."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import capr
from capr.documents import ReadError
from capr.documents.formats import BY_NAME

EXACT = "ASSESSMENT:\r\n\tFever 38.5 °C\u00a0— none\r\n\rPt says \u201cok\u201d 🩺\n\x00end  \n\n"


def test_every_character_is_kept(read):
    (document,), problems, notices = read("note.txt", EXACT)
    assert document.text == EXACT
    assert document.id == "note.txt"
    assert not problems
    assert not notices


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_encodings(read, encoding):
    (document,), problems, _ = read("note.txt", EXACT.encode(encoding))
    assert document.text == EXACT
    assert not problems


def test_windows_1252_is_read_and_said(read):
    text = "Temp 38° – “no fever”, café\n"
    (document,), problems, (notice,) = read("note.txt", text.encode("cp1252"))
    assert document.text == text
    assert not problems
    assert "Windows-1252" in notice.fact


def test_one_stray_byte_does_not_spoil_the_rest(read):
    (document,), _, notices = read("note.txt", "naïve é ".encode() + b"\xb5g\n")
    assert document.text == "naïve é µg\n"
    assert len(notices) == 1


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("a.txt", b"bad \x81 byte", "byte 0x81 of the text is neither UTF-8 nor Windows-1252"),
        ("a.txt", b"\xff\xfea\x00b", "it begins as utf-16-le but is not"),
        ("a.txt.gz", b"\x1f\x8b\x08\x00truncated", "gzip"),
        ("a.docx", b"PK\x03\x04\x00\x00", "not in a format that capr reads"),
        ("photo.png", b"\x89PNG\r\n\x1a\n\x00\x00", "not in a format that capr reads"),
    ],
)
def test_broken_input_is_reported(read, name, content, fact):
    documents, (problem,), _ = read(name, content)
    assert documents == []
    assert fact in problem.fact


def test_an_empty_file_is_a_document_and_a_notice(read):
    (document,), problems, (notice,) = read("empty.txt", b"")
    assert document.text == ""
    assert not problems
    assert "empty" in notice.fact


def test_gzip_is_transparent(read):
    import gzip

    (document,), *_ = read("note.txt.gz", gzip.compress(EXACT.encode()))
    assert (document.id, document.text) == ("note.txt", EXACT)


def test_a_folder_is_read_in_order_with_its_metadata(tmp_path):
    (tmp_path / "ward").mkdir()
    (tmp_path / "ward" / "b.txt").write_text("two")
    (tmp_path / "ward" / "a.txt").write_text("one")
    (tmp_path / "c.txt").write_text("three")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "ward" / "metadata.csv").write_text("file,id,patient,date\na.txt,n1,p1,2026-01-02\n")
    documents = {document.id: document for document in capr.read(tmp_path)}
    assert list(documents) == ["c.txt", "n1", "ward/b.txt"]
    assert documents["n1"].metadata == {
        "patient": "p1",
        "date": "2026-01-02",
        "source": tmp_path.name,
        "file": "ward/a.txt",
    }


def test_folders_behind_links_are_read_and_loops_are_not(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("one")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "top")
    reading = capr.read(tmp_path / "top")
    assert [document.id for document in reading] == ["link/a.txt"]
    assert "was not followed" in reading.problems[0].fact


def test_what_is_no_file_is_reported(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a.txt").write_text("fine")
    reading = capr.read(tmp_path)
    assert [document.text for document in reading] == ["fine"]
    assert [(Path(p.file).name, p.fact) for p in reading.problems] == [
        ("gone.txt", "it cannot be read (No such file or directory)"),
        ("pipe", "it is not a regular file"),
    ]


def test_an_empty_folder_is_a_problem(tmp_path):
    reading = capr.read(tmp_path)
    assert list(reading) == []
    assert reading.problems[0].fact == "there are no files in the folder"


def test_a_metadata_table_that_does_not_fit_is_told(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "metadata.csv").write_text("file,patient,date\na.txt,p1,20260314\nb.txt,p2,x\n")
    reading = capr.read(tmp_path)
    (document,) = reading
    assert (document.metadata["patient"], document.metadata["date"]) == ("p1", "2026-03-14")
    (notice,) = reading.problems
    assert (notice.line, notice.fact) == (3, "it describes 'b.txt', which is not there")
    assert reading.errors == 0


def test_unknown_xml_and_utf_16_without_a_mark_are_told(read):
    _, problems, (notice,) = read("a.xml", '<?xml version="1.0"?><ClinicalDocument/>')
    assert "it is XML of a kind that capr does not know" in notice.fact
    assert not problems
    _, _, (notice,) = read("b.txt", "No fever".encode("utf-16-le"))
    assert "probably UTF-16 without its mark" in notice.fact


def test_the_same_id_twice_is_an_error_unless_replace(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    paths = [tmp_path / "x", tmp_path / "y"]
    reading = capr.read(paths)
    assert [document.text for document in reading] == ["x"]
    assert reading.errors == 1
    assert str(tmp_path / "x" / "a.txt") in reading.problems[0].fact
    reading = capr.read(paths, replace=True)
    assert [document.text for document in reading] == ["x", "y"]
    assert (reading.errors, reading.replaced) == (0, 1)


def test_strict_stops_at_the_first_problem(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\x81")
    (tmp_path / "b.txt").write_text("fine")
    with pytest.raises(ReadError, match=r"a\.txt.*0x81.*Fix: save the file as UTF-8"):
        list(capr.read(tmp_path, strict=True))


def test_missing_paths_formats_and_fields_are_named():
    with pytest.raises(capr.CaprError, match="no such file or folder"):
        capr.read("nowhere")
    with pytest.raises(capr.CaprError, match=r"no format 'word'.*Fix: use one of"):
        capr.read(".", format="word")
    with pytest.raises(capr.CaprError, match="no field 'body'"):
        capr.read(".", columns={"body": "x"})


ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@given(ANY_TEXT)
def test_any_text_survives(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "note"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    (document,) = capr.read(path, format="text")
    assert document.text == text


@given(ANY_TEXT, st.sampled_from(sorted(BY_NAME)))
def test_no_text_breaks_any_reader(tmp_path_factory, text, format):
    path = tmp_path_factory.mktemp("any") / "note"
    path.write_bytes(text.encode())
    for forced in (None, format):
        reading = capr.read(path, format=forced)
        assert len(list(reading)) + len(reading.problems) > 0


@given(st.binary(), st.sampled_from(sorted(BY_NAME)))
def test_no_bytes_break_any_reader(tmp_path_factory, content, format):
    path = tmp_path_factory.mktemp("any") / "note"
    path.write_bytes(content)
    for forced in (None, format):
        reading = capr.read(path, format=forced)
        assert len(list(reading)) + len(reading.problems) > 0
