"""Plain text and folders of plain text: every character is kept."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import capr
from capr.documents import ReadError, Unpacked
from capr.documents.formats import BY_NAME

EXACT = "ASSESSMENT:\r\n\tFever 38.5 °C\u00a0— none\r\n\rPt says \u201cok\u201d 🩺\n\x00end  \n\n"


def test_every_character_is_kept(read):
    (document,), problems, notices = read("note.txt", EXACT)
    assert document.text == EXACT
    assert document.id == "note.txt"
    assert not problems
    assert not notices


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_unicode_encoding_is_read(read, encoding):
    (document,), problems, _ = read("note.txt", EXACT.encode(encoding))
    assert document.text == EXACT
    assert not problems


def test_windows_1252_is_read_with_a_notice(read):
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


@pytest.mark.parametrize("name", ["t8.py", "SETUP.CFG", "query.sql"])
def test_program_code_is_read_with_a_notice(read, name):
    (document,), problems, (notice,) = read(name, "x = 1\n")
    assert document.text == "x = 1\n"
    assert not problems
    assert notice.fact == "by its name, it is program code or settings; it was read as text"


@pytest.mark.parametrize("name", ["note", "note.txt", "note.rpt", "12.03", "note.R"])
def test_any_other_name_is_read_without_a_notice(read, name):
    assert read(name, "x = 1\n")[1:] == ([], [])


@pytest.mark.parametrize("content", [b"bad \x81 byte", b"junk \x81\xe9\x8d\xff"])
def test_a_rejected_file_gets_one_message_about_its_encoding(read, content):
    documents, (problem,), notices = read("a.txt", content)
    assert documents == []
    assert "byte 0x81" in problem.fact
    assert not notices


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


def test_links_to_folders_are_followed_but_not_in_loops(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("one")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "top")
    stream = capr.read(tmp_path / "top")
    assert [document.id for document in stream] == ["link/a.txt"]
    assert "was not followed" in stream.problems[0].fact


def test_a_path_that_is_not_a_regular_file_is_reported(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a.txt").write_text("fine")
    stream = capr.read(tmp_path)
    assert [document.text for document in stream] == ["fine"]
    assert [(Path(p.file).name, p.fact) for p in stream.problems] == [
        ("gone.txt", "it cannot be read (No such file or directory)"),
        ("pipe", "it is not a regular file"),
    ]


def test_an_empty_folder_is_a_problem(tmp_path):
    stream = capr.read(tmp_path)
    assert list(stream) == []
    assert stream.problems[0].fact == "there are no files in the folder"


def test_a_metadata_row_for_a_missing_file_is_reported(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "metadata.csv").write_text("file,patient,date\na.txt,p1,20260314\nb.txt,p2,2026\n")
    stream = capr.read(tmp_path)
    (document,) = stream
    assert (document.metadata["patient"], document.metadata["date"]) == ("p1", "2026-03-14")
    (problem,) = stream.problems
    assert (problem.line, problem.fact) == (3, "it describes 'b.txt', which does not exist")
    assert str(problem).endswith(" Fix: correct the name.")
    assert stream.errors == 1


def test_a_table_that_describes_other_files_is_named_itself(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    table = tmp_path / "metadata.csv"
    table.write_text("file,patient,finding\na.txt,p1,two\n")
    stream = capr.read(table)
    assert list(stream) == []
    assert stream.problems[0].fact == "the table describes the files of its folder and has no texts of its own"
    assert stream.problems[0].fix == f"read the folder ({tmp_path})"
    assert [document.text for document in capr.read(table, columns={"text": "finding"})] == ["two"]
    table.write_text("file,patient,text\na.txt,p1,two\n")
    assert [document.text for document in capr.read(table)] == ["two"]


@pytest.mark.parametrize(
    ("header", "column", "columns"),
    [
        ("name,patient", "the column 'name'", "name, patient"),
        ("filename;patient", "the column 'filename'", "filename, patient"),
        ("visit,patient", "the column with the names of the files", "visit, patient"),
    ],
)
def test_a_metadata_table_without_a_column_file_says_what_is_missing(tmp_path, header, column, columns):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "metadata.csv").write_text(f"{header}\n{'a.txt,p1'.replace(',', header[-8])}\n")
    stream = capr.read(tmp_path)
    assert [document.id for document in stream] == ["a.txt"]
    (problem,) = stream.problems
    assert (problem.file, problem.line) == (str(tmp_path / "metadata.csv"), 1)
    assert problem.fact == f"the table has no column 'file'; its columns are: {columns}"
    assert problem.fix == f"rename {column} to file, or name a column with texts by --column text=NAME"
    assert stream.errors == 1


def test_a_metadata_table_with_texts_and_without_a_column_file_has_documents(tmp_path):
    (tmp_path / "metadata.csv").write_text("id,text,memo\n1,one,two\n")
    assert [document.text for document in capr.read(tmp_path)] == ["one"]
    (tmp_path / "metadata.csv").write_text("id,memo\n1,two\n")
    stream = capr.read(tmp_path, columns={"text": "memo"})
    assert [document.text for document in stream] == ["two"]
    assert not stream.problems


@pytest.mark.parametrize("date", ["18.03.2024", "2024-02-30", "03/2024", "March 2024", "2024-13"])
def test_a_date_that_filters_do_not_understand_is_kept_with_a_notice(tmp_path, date):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("one")
    table = tmp_path / "metadata.csv"
    table.write_text(f"file,date\na.txt,2024-03\nb.txt,{date}\n")
    stream = capr.read(tmp_path)
    assert [document.metadata["date"] for document in stream] == ["2024-03", date]
    (notice,) = stream.problems
    assert str(notice) == (
        f"{table}, line 3: capr does not understand the date {date!r}. "
        "Write dates as 2024-03-18, so that filters find them."
    )
    assert stream.errors == 0


def test_many_such_dates_give_one_notice_for_their_file(read):
    rows = "".join(f"{number},{number:02}.03.2024,text\n" for number in range(1, 31))
    documents, problems, (notice,) = read("notes.csv", f"id,date,text\n{rows}")
    assert (len(documents), problems) == (30, [])
    assert (notice.line, notice.fact) == (2, "capr does not understand the date '01.03.2024' and 29 others in the file")
    _, _, (notice,) = read("two.csv", "id,date,text\n1,1.3.24,text\n2,2.3.24,text\n")
    assert notice.fact == "capr does not understand the date '1.3.24' and 1 other in the file"
    _, _, (notice,) = read("notes.jsonl", '{"text": "a"}\n{"text": "b", "date": "1 May"}\n')
    assert (notice.line, notice.fact) == (2, "capr does not understand the date '1 May'")


@pytest.mark.parametrize("date", ["2024", "2024-03", "2024-03-18", "2024-03-18T09:30:00+01:00", "20240318", ""])
def test_a_date_that_filters_understand_gives_no_notice(read, date):
    (document,), problems, notices = read("notes.csv", f"id,date,text\n1,{date},text\n")
    assert document.text == "text"
    assert not problems
    assert not notices


@pytest.mark.parametrize(
    ("header", "field", "near"),
    [
        ("file,patientid,date", "patient", "patientid"),
        ("file,patient_id,date", "patient", "patient_id"),
        ("file,Pateint,date", "patient", "Pateint"),
        ("file,patient,Datum", "date", "Datum"),
        ("file,patient,note date", "date", "note date"),
    ],
)
def test_a_metadata_column_with_a_near_name_gives_one_notice(tmp_path, header, field, near):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("one")
    table = tmp_path / "metadata.csv"
    table.write_text(f"{header}\na.txt,p1,2024\nb.txt,p2,2024\n")
    stream = capr.read(tmp_path)
    assert {document.metadata[near][0] for document in stream} <= {"p", "2"}
    (notice,) = stream.problems
    expected = f"{table}, line 1: there is no column {field!r}, and {near!r} may be meant. If so, rename it to {field}."
    assert str(notice) == expected


@pytest.mark.parametrize("columns", ["file,patient,patient_id,date,datum", "file,ward,data", "file,update,outpatient"])
def test_other_metadata_columns_give_no_notice(tmp_path, columns):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "metadata.csv").write_text(f"{columns}\na.txt{',2024' * columns.count(',')}\n")
    stream = capr.read(tmp_path)
    assert len(list(stream)) == 1
    assert not stream.problems


@pytest.mark.parametrize(
    ("count", "fact"),
    [
        (1, "1 of the 3 files beside it has no row: n0000.txt"),
        (3, "3 of the 5 files beside it have no row: n0000.txt, n0001.txt, n0002.txt"),
        (1500, "1,500 of the 1,502 files beside it have no row: n0000.txt, n0001.txt, n0002.txt, ..."),
    ],
)
def test_files_without_a_row_in_the_metadata_give_one_notice(tmp_path, count, fact):
    for name in ("a", "b", *(f"n{number:04}" for number in range(count))):
        (tmp_path / f"{name}.txt").write_text("one")
    (tmp_path / "metadata.csv").write_text("file,patient\na.txt,p1\nb.txt,\n")
    stream = capr.read(tmp_path)
    assert len(list(stream)) == count + 2
    (notice,) = stream.problems
    assert str(notice) == f"{tmp_path / 'metadata.csv'}: {fact}. Add a row for each, so that filters find them."
    assert stream.errors == 0


def test_only_a_folder_with_a_table_gives_a_notice_about_files_without_a_row(tmp_path):
    (tmp_path / "ward").mkdir()
    (tmp_path / "ward" / "a.txt").write_text("one")
    (tmp_path / "ward" / "metadata.csv").write_text("file,patient\na.txt,p1\n")
    (tmp_path / "b.txt").write_text("two")
    stream = capr.read([tmp_path, tmp_path / "b.txt"], replace=True)
    assert len(list(stream)) == 3
    assert not stream.problems


@pytest.mark.parametrize("name", ["Metadata.CSV", "METADATA.tsv"])
def test_the_name_of_the_metadata_may_have_another_case(tmp_path, name):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / name).write_text("file,patient\na.txt,p1\n")
    for path in (tmp_path, tmp_path / "a.txt"):
        stream = capr.read(path)
        assert [document.metadata["patient"] for document in stream] == ["p1"]
        assert not stream.problems
    stream = capr.read(tmp_path / name)
    assert list(stream) == []
    assert stream.problems[0].fact == "the table describes the files of its folder and has no texts of its own"


def test_files_of_unknown_origin_have_metadata_only_under_its_exact_name(tmp_path):
    """The server keeps uploads from having that name, because the limit would not apply to the table."""
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "Metadata.CSV").write_text("file,patient,text\na.txt,p1,two\n")
    (document,) = capr.read(tmp_path / "a.txt", unpacked=Unpacked(1000))
    assert "patient" not in document.metadata


def test_unknown_xml_and_utf_16_without_a_byte_order_mark_are_reported(read):
    _, problems, (notice,) = read("a.xml", '<?xml version="1.0"?><ClinicalDocument/>')
    assert "it is XML of an unknown kind" in notice.fact
    assert not problems
    _, _, (notice,) = read("b.txt", "No fever".encode("utf-16-le"))
    assert "probably UTF-16 without a byte order mark" in notice.fact


def test_a_repeated_id_is_an_error_without_replace(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    paths = [tmp_path / "x", tmp_path / "y"]
    stream = capr.read(paths)
    assert [document.text for document in stream] == ["x"]
    assert stream.errors == 1
    assert str(tmp_path / "x" / "a.txt") in stream.problems[0].fact
    stream = capr.read(paths, replace=True)
    assert [document.text for document in stream] == ["x", "y"]
    assert (stream.errors, stream.replaced) == (0, 1)


def test_a_strict_reading_stops_at_the_first_problem(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\x81")
    (tmp_path / "b.txt").write_text("fine")
    with pytest.raises(ReadError, match=r"a\.txt.*0x81.*Fix: save the file as UTF-8"):
        list(capr.read(tmp_path, strict=True))


def test_unknown_paths_formats_and_fields_are_errors():
    with pytest.raises(capr.CaprError, match="no such file or folder"):
        capr.read("nowhere")
    with pytest.raises(capr.CaprError, match=r"no format 'word'.*Fix: use one of"):
        capr.read(".", format="word")
    with pytest.raises(capr.CaprError, match="no field 'body'"):
        capr.read(".", columns={"body": "x"})


ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@given(ANY_TEXT)
def test_any_text_is_read_exactly(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "note"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    (document,) = capr.read(path, format="text")
    assert document.text == text


@given(ANY_TEXT, st.sampled_from(sorted(BY_NAME)))
def test_no_text_breaks_any_reader(tmp_path_factory, text, format):
    path = tmp_path_factory.mktemp("any") / "note"
    path.write_bytes(text.encode())
    for forced_format in (None, format):
        stream = capr.read(path, format=forced_format)
        assert len(list(stream)) + len(stream.problems) > 0


@given(st.binary(), st.sampled_from(sorted(BY_NAME)))
def test_no_bytes_break_any_reader(tmp_path_factory, content, format):
    path = tmp_path_factory.mktemp("any") / "note"
    path.write_bytes(content)
    for forced_format in (None, format):
        stream = capr.read(path, format=forced_format)
        assert len(list(stream)) + len(stream.problems) > 0
