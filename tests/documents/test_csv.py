"""Tables: columns by name or by mapping, exact fields, broken rows."""

import gzip

import pytest

import capr

EXCEL = (
    "\ufeffNote_ID,MRN,Note_Date,Category,Ward,Note_Text\r\n"
    '101,00417,2026-03-14 00:00:00,Progress note,"3B, east","S: ""no pain""\r\n\tT 38,5 °C\u00a0— 🩺\r\n"\r\n'
    "102,00418,14.03.2026,,,stable\r\n"
)


def formats(path, **options):
    stream = capr.read(path, **options)
    list(stream)
    return stream.formats


def test_a_table_from_excel_is_read(read, tmp_path):
    (first, second), problems, (notice,) = read("notes.csv", EXCEL)
    assert first.id == "101"
    assert first.title == ""
    assert first.text == 'S: "no pain"\r\n\tT 38,5 °C\u00a0— 🩺\r\n'
    assert first.metadata == {
        "source": "notes.csv",
        "file": "notes.csv",
        "patient": "00417",
        "date": "2026-03-14",
        "type": "Progress note",
        "Ward": "3B, east",
    }
    assert first.annotations == ()
    assert (second.id, second.text, second.metadata["date"]) == ("102", "stable", "14.03.2026")
    assert not problems
    assert (notice.line, notice.fact) == (5, "capr does not understand the date '14.03.2026'")
    assert formats(tmp_path / "notes.csv") == {"csv": 2}


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.tsv", 'id\ttext\n1\tsaid "no", left; ok\n', 'said "no", left; ok'),
        ("a.tab", "id\ttext\r\n1\ta,b,c,d\r\n", "a,b,c,d"),
        ("a.csv", "id;text;Labor\n1;Fieber 38,5, Husten;x\n", "Fieber 38,5, Husten"),
        ("a.csv", 'id;text\r1;"a, b, c"\r', "a, b, c"),  # line ends of an old Macintosh
        ("a.csv", 'id;"name, first, last";text\n1;x;a\n', "a"),
        (
            "a.csv",
            'id,text\r\n1,"a\rb\nc\x0bd\x0ce\u2028f\x85g\x00"\r\n',
            "a\rb\nc\x0bd\x0ce\u2028f\x85g\x00",
        ),
        ("a.csv", '\n\nid,text\n\n1, 5" tall \n', ' 5" tall '),
    ],
)
def test_every_delimiter_and_line_end_is_read(read, tmp_path, name, content, text):
    (document,), problems, _ = read(name, content)
    assert (document.id, document.text) == ("1", text)
    assert not problems
    assert formats(tmp_path / name) == {"csv": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_every_encoding_is_read(read, encoding):
    (document,), problems, notices = read("a.csv", "id,text\r\nä,Größe\r\n".encode(encoding))
    assert (document.id, document.text) == ("ä", "Größe")
    assert not problems
    assert [notice.fact for notice in notices] == (
        ["some bytes are not UTF-8 (the first in line 2) and were read as Windows-1252"] if encoding == "cp1252" else []
    )


def test_a_column_mapping_ignores_case(read):
    table = "ROW,NOTE,Who,When,Kind,Head,text\n7,hello,p1,20260314,RAD,Chest,not this\n"
    columns = {"id": "ROW", "text": "note", "patient": "WHO", "date": "When", "type": "Kind", "title": "Head"}
    (document,), problems, _ = read("a.csv", table, columns=columns)
    assert (document.id, document.title, document.text) == ("7", "Chest", "hello")
    expected = {"patient": "p1", "date": "2026-03-14", "type": "RAD", "text": "not this"}
    assert document.metadata == {"source": "a.csv", "file": "a.csv", **expected}
    assert not problems


def test_a_column_with_a_near_name_gives_one_notice(read):
    table = "id,text,Patient No,Datum\n1,a,p1,2024\n2,b,p2,2025\n"
    (document, _), problems, notices = read("a.csv", table)
    assert document.metadata["Patient No"] == "p1"
    assert not problems
    assert [(notice.line, notice.fact, notice.fix) for notice in notices] == [
        (
            1,
            "there is no column 'patient', and 'Patient No' may be meant",
            "if so, rename it to patient, or use --column patient='Patient No'",
        ),
        (
            1,
            "there is no column 'date', and 'Datum' may be meant",
            "if so, rename it to date, or use --column date=Datum",
        ),
    ]
    (document, _), _, notices = read("a.csv", table, columns={"patient": "Patient No", "date": "Datum"})
    assert (document.metadata["patient"], document.metadata["date"]) == ("p1", "2024")
    assert not notices


def test_a_mapped_id_and_title_precede_columns_of_that_name(read):
    table = "ROW,id,Head,title,text\n7,wrong,Chest,wrong,hello\n"
    (document,), *_ = read("a.csv", table, columns={"id": "ROW", "title": "Head"})
    assert (document.id, document.title) == ("7", "Chest")


def test_a_mapped_column_name_may_contain_a_plus(read):
    (document,), *_ = read("a.csv", "id,Na+K\n1,low\n", columns={"text": "Na+K"})
    assert document.text == "low"


def test_findings_and_impression_are_sections(read):
    table = 'id,findings,impression\n1,"Lungs clear.\r\n",No PE 🩺.\n2,,Normal.\n3,,\n'
    columns = {"text": "findings+impression"}
    (two_sections, one_section, empty), problems, (notice,) = read("a.csv", table, columns=columns)
    assert two_sections.text == "Lungs clear.\r\n\n\nNo PE 🩺."
    assert [(a.kind, a.value, two_sections[a.span]) for a in two_sections.annotations] == [
        ("section", {"heading": "findings"}, "Lungs clear.\r\n"),
        ("section", {"heading": "impression"}, "No PE 🩺."),
    ]
    assert "findings" not in two_sections.metadata
    assert [(a.value, one_section[a.span]) for a in one_section.annotations] == [({"heading": "impression"}, "Normal.")]
    assert empty.text == ""
    assert (notice.fact, notice.record) == ("the document is empty", "3")
    assert not problems


@pytest.mark.parametrize(
    ("rows", "fact", "line", "record", "read_ids"),
    [
        ("2\n3,c\n", "the row has 1 columns, the header has 2", 3, 2, "13"),
        ("2,b,c\n3,c\n", "the row has 3 columns, the header has 2", 3, 2, "13"),
        ('2,"b\n\nb"\n3\n4,d\n', "the row has 1 columns, the header has 2", 6, 3, "124"),
        ('2,"b" c\n3,c\n', "lines 3 to 3 are not a row", 3, 2, "13"),
        ('2,"b \\"c\\" d"\n3,c\n', "lines 3 to 3 are not a row", 3, 2, "13"),
        ('2,"b\n3,"c"\n4,d\n', "lines 3 to 4 are not a row", 3, 2, "14"),
        ('2,"b\n3,c\n', "lines 3 to 4 are not a row (unexpected end of data)", 3, 2, "1"),
        ("1,again\n3,c\n", "the id '1' was read before", None, "1", "13"),
    ],
)
def test_broken_rows_are_reported_and_the_rest_is_read(read, rows, fact, line, record, read_ids):
    documents, (problem,), notices = read("a.csv", "id,text\n1,a\n" + rows)
    assert fact in problem.fact
    assert (problem.line, problem.record) == (line, record)
    assert [document.id for document in documents] == list(read_ids)
    assert not notices


@pytest.mark.parametrize("row", [b"2,b\x81,w\n", b"2,b,w\x81\n"])
def test_an_undefined_byte_affects_only_its_row(read, row):
    documents, problems, _ = read("a.csv", b"id,text,ward\n1,a,w\n" + row + b"3,c,w\n")
    assert [document.id for document in documents] == ["1", "3"]
    assert [(problem.record, "0x81" in problem.fact) for problem in problems] == [("2", True)]


@pytest.mark.parametrize(
    ("table", "columns", "facts"),
    [
        ("id,memo\n1,b\n2,c\n", {}, ["no field for the text; the fields are: id, memo"]),
        ("1,hello\n2,world\n", {}, ["no field for the text; the fields are: 1, hello"]),
        ("id,text\n1,b\n", {"id": "KEY", "patient": "MRN"}, ["no field 'KEY' for the id", "no field 'MRN'"]),
        ("id,findings\n1,b\n", {"text": "findings+impression"}, ["impression"]),
    ],
)
def test_a_missing_column_is_reported_once(read, table, columns, facts):
    documents, problems, _ = read("a.csv", table, columns=columns)
    assert documents == []
    assert [problem.line for problem in problems] == [1] * len(facts)
    for problem, fact in zip(problems, facts, strict=True):
        assert fact in problem.fact


@pytest.mark.parametrize("header", ["id,text,text", "id,text,ward,ward"])
def test_a_repeated_column_name_loses_no_value_silently(read, header):
    values = ["1", "first", "second", "third"][: header.count(",") + 1]
    documents, problems, notices = read("a.csv", f"{header}\n{','.join(values)}\n")
    content = str([(document.text, document.metadata) for document in documents])
    assert problems or notices or all(value in content for value in values[1:])


def test_a_table_without_rows_is_reported(read):
    documents, problems, notices = read("a.csv", "id,memo\n")
    assert documents == []
    assert problems or notices


def test_truncated_gzip_is_reported_after_its_records(read):
    table = "id,text\n" + "".join(f"{i},{i * i * 7919}\n" for i in range(20_000))
    documents, (problem,), _ = read("a.csv.gz", gzip.compress(table.encode())[:-3000])
    assert "gzip data ends too early" in problem.fact
    assert 15_000 < len(documents) < 20_000
    assert problem.line == len(documents) + 1
    assert documents[-1].text == str((len(documents) - 1) ** 2 * 7919)


def test_a_rejected_document_is_not_counted(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,a\n1,b\n")
    assert formats(tmp_path / "a.csv") == {"csv": 1}


def test_a_forced_format_ignores_the_file_name(read, tmp_path):
    (document,), *_ = read("export.txt", "id,text\n1,a\n", format="csv")
    assert (document.id, document.text) == ("1", "a")
    assert formats(tmp_path / "export.txt", format="csv") == {"csv": 1}
