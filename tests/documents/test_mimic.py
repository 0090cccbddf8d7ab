"""MIMIC-III and MIMIC-IV notes as PhysioNet publishes them."""

import gzip

import pytest

import capr

NOTEEVENTS = (
    '"ROW_ID","SUBJECT_ID","HADM_ID","CHARTDATE","CHARTTIME","STORETIME","CATEGORY","DESCRIPTION","CGID","ISERROR","TEXT"\n'
    '174,22532,167853,2151-08-04,,,"Discharge summary","Report",,,"Admission Date:  [**2151-7-16**]\n'
    '\n\nService:\tADDENDUM, ""final"" \u00a0é\n"\n'
    '175,13702,107527,2118-06-14,2118-06-14 08:30:00,2118-06-14 08:33:00,"Nursing/other","Note",14998,1,'
    '"Resp: 5\' x"\n'
)
FIELDS = "note_id,subject_id,hadm_id,note_type,note_seq,charttime,storetime,text\n"


def formats(path, **options):
    stream = capr.read(path, **options)
    list(stream)
    return stream.formats


def test_mimic_iii_noteevents_are_read(read, tmp_path):
    (summary, nursing), problems, notices = read("NOTEEVENTS.csv", NOTEEVENTS)
    assert (summary.id, summary.title) == ("174", "Report")
    assert summary.text == ('Admission Date:  [**2151-7-16**]\n\n\nService:\tADDENDUM, "final" \u00a0é\n')
    assert summary.metadata == {
        "source": "MIMIC-III",
        "file": "NOTEEVENTS.csv",
        "patient": "22532",
        "date": "2151-08-04",
        "type": "Discharge summary",
        "hadm_id": "167853",
        "description": "Report",
    }
    assert summary.annotations == ()
    assert nursing.text == "Resp: 5' x"
    assert nursing.metadata["date"] == "2118-06-14T08:30:00"
    assert nursing.metadata["iserror"] == "1"  # the note is kept, and its metadata say that it is an error
    assert not problems
    assert not notices
    assert formats(tmp_path / "NOTEEVENTS.csv") == {"mimic": 2}


def test_mimic_iv_discharge_summaries_are_read(read, tmp_path):
    text = " \nName:  ___                     Unit No:   ___\n \nAdmission Date:  ___\n"
    row = f'10000032-DS-21,10000032,22595853,DS,21,2180-05-07 00:00:00,2180-05-09 15:26:00,"{text}"\n'
    (document,), problems, _ = read("discharge.csv.gz", gzip.compress((FIELDS + row).encode()))
    assert (document.id, document.title, document.text) == ("10000032-DS-21", "Discharge summary", text)
    assert document.metadata == {
        "source": "MIMIC-IV-Note",
        "file": "discharge.csv.gz",
        "patient": "10000032",
        "type": "Discharge summary",
        "date": "2180-05-07",
        "hadm_id": "22595853",
        "note_seq": "21",
        "storetime": "2180-05-09 15:26:00",
    }
    assert not problems
    assert formats(tmp_path / "discharge.csv.gz") == {"mimic": 1}


def test_mimic_iv_types_get_their_full_names(read):
    rows = "".join(f"1-{kind}-{i},1,,{kind},{i},,,x\r\n" for i, kind in enumerate(("RR", "AR", "AD", "ZZ")))
    documents, *_ = read("radiology.csv", FIELDS + rows)
    types = ["Radiology report", "Addendum", "Addendum", "ZZ"]
    assert [document.metadata["type"] for document in documents] == types
    assert "hadm_id" not in documents[0].metadata


@pytest.mark.parametrize(
    ("rows", "fact", "line", "record"),
    [
        (",2,b\n", "the row has no note id", 3, 2),
        ("2,2,\n", "the row has no text", 3, 2),
        (",,\n", "the row has no note id and no text", 3, 2),
        ("2,2\n", "the row has 2 columns, the header has 3", 3, 2),
        ("2,2,fever, cough\n", "the row has 4 columns, the header has 3", 3, 2),
        ('2,2,"said "no""\n', "lines 3 to 3 are not a row", 3, 2),
        ("1,2,b\n", "the id '1' was read before", None, "1"),
    ],
)
def test_broken_rows_are_reported_and_the_rest_is_read(read, rows, fact, line, record):
    documents, (problem,), _ = read("notes.csv", f"row_id,subject_id,text\n1,2,a\n{rows}9,2,z\n")
    assert fact in problem.fact
    assert (problem.line, problem.record) == (line, record)
    assert [document.id for document in documents] == ["1", "9"]


@pytest.mark.parametrize("row", [b"2,2,b\x81,x\n", b"2,2,b,\x81\n", b"2,\x81,b,x\n"])
def test_an_undefined_byte_affects_only_its_note(read, row):
    table = b"row_id,subject_id,text,description\n1,2,a,x\n" + row + b"3,2,c,x\n"
    documents, problems, _ = read("notes.csv", table)
    assert [document.id for document in documents] == ["1", "3"]
    assert [(problem.record, "0x81" in problem.fact) for problem in problems] == [("2", True)]


def test_an_open_quote_is_reported(read):
    (document,), (problem,), _ = read("notes.csv", 'row_id,subject_id,text\n1,2,a\n2,2,"b\n\n3,2,c\n')
    assert document.id == "1"
    assert "lines 3 to 5 are not a row (unexpected end of data)" in problem.fact
    assert (problem.line, problem.record) == (3, 2)


def test_truncated_gzip_is_reported_after_its_records(read):
    table = "row_id,subject_id,text\n" + "".join(f"{i},2,{i * i * 7919}\n" for i in range(20_000))
    documents, (problem,), _ = read("notes.csv.gz", gzip.compress(table.encode())[:-3000])
    assert "gzip data ends too early" in problem.fact
    assert 15_000 < len(documents) < 20_000
    assert problem.line == len(documents) + 1


@pytest.mark.parametrize(
    "header", ["row_id, subject_id, text", '"row_id", "subject_id", "text"', "Row_Id,Subject_Id,Text"]
)
def test_a_header_may_have_spaces_quotes_and_any_case(read, header):
    (document,), problems, _ = read("notes.csv", f"{header}\n1,2,a\n")
    assert (document.id, document.text, document.metadata["patient"]) == ("1", "a", "2")
    assert not problems


def test_other_columns_do_not_replace_the_notes_own_fields(read):
    table = "row_id,subject_id,text,id,title,patient,source\n1,2,a,x1,x2,x3,x4\n"
    (document,), *_ = read("notes.csv", table)
    assert (document.id, document.text, document.metadata["patient"]) == ("1", "a", "2")
    assert document.metadata["source"] == "MIMIC-III"


def test_a_column_mapping_is_followed_or_reported(read):
    table = "ROW_ID,SUBJECT_ID,TEXT,CLEAN_TEXT\n1,2,raw,clean\n"
    documents, problems, notices = read("notes.csv", table, columns={"text": "CLEAN_TEXT"})
    assert [document.text for document in documents] == ["clean"] or problems or notices


def test_a_repeated_column_name_loses_no_value_silently(read):
    documents, problems, notices = read("notes.csv", "ROW_ID,SUBJECT_ID,TEXT,text\n1,2,first,second\n")
    content = str([(document.text, document.metadata) for document in documents])
    assert problems or notices or ("first" in content and "second" in content)


def test_a_forced_format_reads_any_table(read, tmp_path):
    (document,), *_ = read("x.txt", "note_id,text\n7,a\n", format="mimic")
    assert (document.id, document.text, document.metadata["source"]) == ("7", "a", "MIMIC-IV-Note")
    assert formats(tmp_path / "x.txt", format="mimic") == {"mimic": 1}
    documents, (problem,), _ = read("y.csv", "a,b\n1,2\n", format="mimic")
    assert documents == []
    assert (problem.fact, problem.line) == ("the row has no note id and no text", 2)
