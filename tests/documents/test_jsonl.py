"""JSON Lines, JSON lists and single records, as Python and hospitals write them."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import capr
from capr.documents import Annotation, Document, Span

TEXT = 'S: \u201cno pain\u201d\r\n\tT 38.5\u00a0°C 🩺\u2028\x85 "ok"\x00\n'
NOTE = {
    "note_id": "n1",
    "title": "Visit",
    "note_text": TEXT,
    "patient_id": 417,
    "note_date": "2026-03-14 08:30:00",
    "note_type": "Progress",
    "department": {"name": "3B"},
    "codes": ["I10"],
    "closed": False,
    "author": None,
}
FIRST, LAST = {"id": "1", "text": "a"}, {"id": "9", "text": "z"}
PRETTY = {"indent": 2}


def lines(*records):
    return "".join(
        (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)) + "\n" for record in records
    )


def formats(path, **options):
    stream = capr.read(path, **options)
    list(stream)
    return stream.formats


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("name", ["notes.jsonl", "notes.ndjson", "notes.json", "export.dat"])
def test_json_lines_are_read(read, tmp_path, name, ascii_only):
    content = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\r\n" for record in (NOTE, LAST))
    (note, last), problems, notices = read(name, content)
    assert (note.id, note.title, note.text) == ("n1", "Visit", TEXT)
    assert note.metadata == {
        "source": name,
        "file": name,
        "patient": "417",
        "date": "2026-03-14T08:30:00",
        "type": "Progress",
        "department": {"name": "3B"},
        "codes": ["I10"],
        "closed": False,
    }
    assert (last.id, last.text) == ("9", "z")
    assert not problems
    assert not notices
    assert formats(tmp_path / name) == {"jsonl": 2}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{"id": "1", "text": TEXT}, LAST]),
        json.dumps([{"id": "1", "text": TEXT}, LAST], ensure_ascii=False, **PRETTY),
        json.dumps({"1": {"text": TEXT}, "9": {"text": "z"}}, **PRETTY),
        json.dumps({"1": {"text": TEXT}, "9": {"text": "z"}}),
        json.dumps({"1": {"text": TEXT}, "9": {"text": "z"}}, **PRETTY).replace("\n", "\r\n"),
    ],
)
def test_a_list_and_an_object_of_records_are_read(read, content):
    documents, problems, _ = read("notes.json", content)
    assert [(document.id, document.text) for document in documents] == [("1", TEXT), ("9", "z")]
    assert not problems


@pytest.mark.parametrize(("name", "line_end"), [("a.json", "\n"), ("a.json", "\r\n"), ("a.json", "\r")])
def test_a_record_may_span_several_lines(read, name, line_end):
    (document,), problems, _ = read(name, json.dumps(NOTE, **PRETTY).replace("\n", line_end))
    assert (document.id, document.text) == ("n1", TEXT)
    assert not problems


def test_an_article_consists_of_its_sections(read):
    sections = [
        {"heading": "Methods", "level": 2, "text": "We\r\n"},
        {"heading": "Results", "text": "🩺 n = 5"},
    ]
    record = {"pmid": 7, "title": "T", "journal": "J", "abstract": "Short.", "sections": sections}
    (document,), problems, _ = read("a.jsonl", lines(record))
    assert (document.id, document.text) == ("7", "Short.\n\nWe\r\n\n\n🩺 n = 5")
    assert [(a.kind, a.value, document[a.span]) for a in document.annotations] == [
        ("section", {"heading": "Abstract"}, "Short."),
        ("section", {"heading": "Methods", "level": 2}, "We\r\n"),
        ("section", {"heading": "Results"}, "🩺 n = 5"),
    ]
    assert document.metadata == {"source": "a.jsonl", "file": "a.jsonl", "journal": "J"}
    assert not problems


def test_columns_are_mapped(read):
    record = {"key": 5, "findings": "Clear.", "impression": "Normal.", "text": "not this"}
    columns = {"id": "KEY", "text": "findings+impression"}
    (document,), *_ = read("a.jsonl", lines(record), columns=columns)
    assert (document.id, document.text) == ("5", "Clear.\n\nNormal.")
    assert [document[a.span] for a in document.annotated("section")] == ["Clear.", "Normal."]
    assert document.metadata["text"] == "not this"


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        ({"k": "2", "text": "b"}, {"id": "KEY"}),
        ({"id": "2", "findings": ["b", "c"], "impression": "d"}, {"text": "findings+impression"}),
    ],
)
def test_a_mapping_to_a_missing_field_is_reported(read, record, columns):
    _, problems, notices = read("a.jsonl", lines(record), columns=columns)
    assert problems or notices


def test_a_document_survives_writing_and_reading(read):
    section = Annotation("section", Span(0, 3), {"heading": "S", "level": 1})
    mention = Annotation("mention", Span(4, 6), {"type": "symptom"})
    metadata = {"source": "EHR", "file": "x", "patient": "p", "date": "3/4/26", "n": 1.5, "list": [1, None]}
    document = Document("n1", TEXT, "T", metadata, (section, mention))
    for name, content in (
        ("a.jsonl", lines(document.as_json())),
        ("a.json", json.dumps([document.as_json()])),
        ("b.json", json.dumps(document.as_json(), **PRETTY)),
    ):
        documents, problems, (notice,) = read(name, content)
        assert (documents, problems) == ([document], [])
        assert notice.fact == "capr does not understand the date '3/4/26'"


@pytest.mark.parametrize("value", ["other", {"$oid": "5"}])
def test_metadata_named_id_or_title_survive_writing_and_reading(read, value):
    metadata = {"source": "s", "file": "f", "id": value, "title": value}
    document = Document("n1", "text", "T", metadata)
    assert read("a.jsonl", lines(document.as_json())) == ([document], [], [])


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    ANY_TEXT.filter(bool),
    ANY_TEXT,
    ANY_TEXT,
    st.dictionaries(ANY_TEXT.filter(lambda key: key not in ("id", "title")), ANY_TEXT),
)
def test_any_document_survives_writing_and_reading(tmp_path_factory, identifier, text, title, metadata):
    document = Document(identifier, text, title, {"source": "s", "file": "f"} | metadata)
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    path.write_text(json.dumps(document.as_json()) + "\n")
    assert list(capr.read(path)) == [document]


def annotated(**annotation):
    return {"id": "2", "text": "abc", "annotations": [annotation]}


@pytest.mark.parametrize(
    ("record", "fact"),
    [
        ('{"id": "2", "text": "b"', "broken JSON at column 24"),
        ('{"id": "2", "text": "b\tc"}', "broken JSON at column 23"),
        ('{"id": "2", "text": "b"},', "broken JSON at column 25 (Extra data)"),
        ('{"id": "2", "text": ' + "[" * 5000, "broken JSON"),
        ('{"id": ' + "2" * 5000 + ', "text": "b"}', "broken JSON"),
        ({"id": "2", "memo": "b"}, "no field for the text; the fields are: id, memo"),
        ({"id": "2", "text": None}, "the text is null, not a string"),
        ({"id": "2", "text": ["b"]}, "the text is a list, not a string"),
        ('["2", "b"]', "the record is a list, not an object"),
        ("null", "the record is null, not an object"),
        ({"id": "2", "sections": [{"heading": "H"}]}, "no field for the text"),
        ({"id": "2", "abstract": ["b"], "sections": [{"text": "c"}]}, "list"),
        (annotated(kind="m", begin=0, end=4), "[0, 4) is outside the text of 3 characters"),
        (annotated(kind="m", begin=-1, end=1), "[-1, 1) is outside the text"),
        (annotated(kind="m", begin=2, end=1), "[2, 1) is outside the text"),
        (annotated(begin=0, end=1), "an annotation is not usable (KeyError: 'kind')"),
        (annotated(kind="m", begin=None, end=1), "an annotation is not usable"),
        (annotated(kind="m", begin=0.7, end=1.9), "an annotation is not usable"),
        (annotated(kind="m", begin=0, end=float("inf")), "an annotation is not usable"),
    ],
)
def test_broken_records_are_reported_and_the_rest_is_read(read, record, fact):
    documents, (problem,), _ = read("a.jsonl", lines(FIRST, record, LAST))
    assert [document.id for document in documents] == ["1", "9"]
    assert fact in problem.fact
    assert problem.line == 2


@pytest.mark.parametrize("value", [r"\ud83d", b"\x81"])
@pytest.mark.parametrize("field", ["text", "title", "ward"])
@pytest.mark.parametrize("form", ["lines", "list"])
def test_an_invalid_character_affects_only_its_record(read, value, field, form):
    records = [FIRST, {"id": "2", "text": "b", field: "HERE"}, LAST]
    content = (lines(*records) if form == "lines" else json.dumps(records)).encode()
    content = content.replace(b"HERE", value if isinstance(value, bytes) else value.encode())
    documents, problems, _ = read("a.jsonl" if form == "lines" else "a.json", content)
    assert [document.id for document in documents] == ["1", "9"]
    assert [problem.record for problem in problems] in (["2"], [2])


@pytest.mark.parametrize("number", ["12345678901234567890123", "NaN"])  # Python writes NaN
def test_unusual_numbers_do_not_end_a_list(read, number):
    content = f'[{{"id": "1", "text": "a", "value": {number}}}, {json.dumps(LAST)}]'
    documents, problems, _ = read("a.json", content)
    assert [document.id for document in documents if document.id == "9"] == ["9"]
    assert len(documents) + len(problems) == 2


@pytest.mark.parametrize("end", ["", ', {"id": "2", "te', ", ]", '] {"id": "2"}', ', {"id" "2"}]'])
def test_a_list_is_read_up_to_broken_json(read, end):
    (document,), (problem,), _ = read("a.json", f"[{json.dumps(FIRST)}{end}")
    assert document.id == "1"
    assert "broken JSON" in problem.fact
    assert problem.record == 2


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz"])
def test_truncated_gzip_is_reported_after_its_records(read, name):
    records = [{"id": i, "text": str(i * i * 7919)} for i in range(20_000)]
    content = lines(*records) if "jsonl" in name else json.dumps(records)
    documents, (problem,), _ = read(name, gzip.compress(content.encode())[:-3000])
    assert "gzip data ends too early" in problem.fact
    assert 15_000 < len(documents) < 20_000


def test_a_note_with_braces_is_not_json(read, tmp_path):
    for text in ("{signed} Dr. X: well", "[x] consent\n", '{"a": ' + "[" * 5000):
        (document,), *_ = read("note.txt", text)
        assert document.text == text
    (document,), *_ = read("note.txt", lines(FIRST), format="jsonl")
    assert document.text == "a"
    assert formats(tmp_path / "note.txt", format="jsonl") == {"jsonl": 1}
