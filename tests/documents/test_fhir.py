"""FHIR R4: the attachments of DocumentReference and DiagnosticReport."""

import base64
import gzip
import json

import pytest

import capr

TEXT = "HPI:\r\n\t“no fever”\u00a0— T 38.5 °C 🩺\r\n"


def encode(content):
    return base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()


def attachment(text="Hello", content_type="text/plain", **fields):
    return {"contentType": content_type, "data": encode(text), **fields}


def reference(identifier="d1", *attachments, **fields):
    return {
        "resourceType": "DocumentReference",
        "id": identifier,
        "status": "current",
        "content": [{"attachment": a} for a in attachments or [attachment()]],
        **fields,
    }


def report(identifier="r1", **fields):
    return {"resourceType": "DiagnosticReport", "id": identifier, "status": "final", **fields}


def bundle(*resources):
    entries = [{"fullUrl": f"urn:uuid:{i}", "resource": resource} for i, resource in enumerate(resources)]
    return {"resourceType": "Bundle", "type": "searchset", "total": len(entries), "entry": entries}


def ndjson(*resources):
    return "".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in resources)


NOTE = reference(
    "d1",
    attachment(TEXT, "text/plain; charset=utf-8", title="Clinic note"),
    type={"coding": [{"system": "http://loinc.org", "code": "11506-3", "display": "Progress note"}]},
    subject={"reference": "https://ehr.example/fhir/Patient/17/_history/2", "display": "Ada L."},
    date="2026-03-14T09:30:00+01:00",
    context={"period": {"start": "2026-03-13"}},
)
LAST = reference("d9")
FORMS = {
    "bundle": json.dumps(bundle(NOTE, LAST), indent=2),
    "bundle of one line": json.dumps(bundle(NOTE, LAST)) + "\n",
    "list": json.dumps([NOTE, LAST], indent=2),
    "ndjson": ndjson(NOTE, LAST),
    "ndjson of bundles": ndjson(bundle(NOTE), bundle(LAST)),
    "ndjson, carriage returns": ndjson(NOTE, LAST).replace("\n", "\r"),
    "bundle of bundles": json.dumps(bundle(bundle(NOTE), bundle(LAST))),
    "entry first": json.dumps({"entry": [{"resource": NOTE}, {"resource": LAST}], "resourceType": "Bundle"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_bundles_lists_and_ndjson(read, tmp_path, form):
    documents, problems, notices = read("export.json", FORMS[form])
    assert [document.id for document in documents] == ["d1", "d9"]
    assert (documents[0].title, documents[0].text) == ("Clinic note", TEXT)
    assert documents[0].metadata == {
        "source": "export.json",
        "file": "export.json",
        "patient": "17",
        "patient_name": "Ada L.",
        "date": "2026-03-13",
        "type": "Progress note",
        "loinc": "11506-3",
        "status": "current",
        "resource": "DocumentReference",
    }
    assert documents[0].annotations == ()
    assert not problems
    assert not notices
    stream = capr.read(tmp_path / "export.json")
    list(stream)
    assert stream.formats == {"fhir": 2}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [10, 100_000])
def test_one_resource(read, indent, size):
    (document,), problems, _ = read("d1.json", json.dumps(reference("d1", attachment("x" * size)), indent=indent))
    assert (document.id, document.text) == ("d1", "x" * size)
    assert not problems


def test_ndjson_whose_first_line_is_long(read):
    documents, problems, _ = read("a.ndjson", ndjson(reference("d1", attachment("x" * 100_000)), LAST))
    assert [document.id for document in documents] == ["d1", "d9"]
    assert not problems


def test_a_report_of_html_keeps_its_sections_and_its_conclusion(read):
    html = "<body><h1>Findings</h1><p>Clear &lt; 5&nbsp;mm</p><h1>Impression</h1><p>No PE</p></body>"
    forms = [attachment(html, "text/html"), attachment("Hi\r\n", title="Plain")]
    code = {"text": "CT chest"}
    resource = report(code=code, effectiveDateTime="2026-03-14", conclusion="No PE.", presentedForm=forms)
    (first, second), problems, _ = read("a.json", json.dumps(bundle(resource)))
    assert (first.id, first.title) == ("r1#1", "CT chest")
    assert first.text == "Findings\n\nClear < 5\u00a0mm\n\nImpression\n\nNo PE\n"
    sections = {a.value["heading"]: first[a.span].strip() for a in first.annotated("section")}
    assert sections == {"Findings": "Findings\n\nClear < 5\u00a0mm", "Impression": "Impression\n\nNo PE"}
    assert (second.id, second.title, second.text) == ("r1#2", "Plain", "Hi\r\n")
    assert not problems
    assert first.metadata["conclusion"] == "No PE."


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        ("é", "", "é"),
        ("é", "TEXT/PLAIN;Charset=UTF-8", "é"),
        ("\ufeffé", "text/plain", "é"),
        ("\ufeffé", "text/plain; charset=utf-8", "é"),
        ("é".encode("utf-16"), 'text/plain; charset="utf-16"', "é"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é"),
        ("“é”".encode("cp1252"), "text/plain", "“é”"),
    ],
)
def test_every_charset_is_decoded(read, content, content_type, text):
    (document,), *_ = read("a.json", json.dumps(bundle(reference("d1", attachment(content, content_type)))))
    assert document.text == text


@pytest.mark.parametrize(
    ("resource", "fact"),
    [
        (reference("d2", {"data": "%%%"}), "bad base64"),
        (reference("d2", {"data": "abc"}), "bad base64 (Incorrect padding)"),
        (reference("d2", {"data": "é"}), "bad base64"),
        (reference("d2", {"url": "Binary/7"}), "the resource only links to its text, url 'Binary/7'"),
        (reference("d2", {"title": "?"}), "no data and no url"),
        (reference("d2", {"data": 5}), "no data and no url"),
        (reference("d2", content=[]), "the DocumentReference has no content.attachment"),
        (reference("d2", content=[{"format": {}}]), "the content has no attachment"),
        (reference("d2", content=[None]), "no content.attachment"),
        (report("d2", conclusion="Normal."), "the DiagnosticReport has no presentedForm"),
        (reference("d2", attachment("x", "image/jpeg")), "type 'image/jpeg' is not text"),
        (reference("d2", attachment("%PDF-1.4 cut", "application/pdf")), "not a readable PDF"),
        (reference("d2", attachment(b"\x81")), "neither UTF-8 nor Windows-1252"),
        (reference("d2", attachment(b"\xe9", "text/plain; charset=utf-8")), "the bytes are not utf-8"),
        (reference("d2", attachment("x", "text/plain; charset=wat")), "unknown charset 'wat'"),
        (reference("d2", attachment("x", "text/plain; charset=\0")), "unknown charset"),
        (reference("d2", attachment("x", title="\ud83d")), "half of a surrogate pair"),
        (reference("d2", subject={"display": "\ud83d"}), "half of a surrogate pair"),
    ],
)
def test_broken_resources_are_reported_and_the_rest_is_read(read, resource, fact):
    for content in (ndjson(NOTE, resource, LAST), json.dumps(bundle(NOTE, resource, LAST))):
        documents, problems, _ = read("a.json", content)
        assert [document.id for document in documents] == ["d1", "d9"]
        assert [(problem.record, fact in problem.fact) for problem in problems] == [("d2", True)]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('{"resourceType": "DocumentReference"', "broken JSON at column 37"),
        ('{"resourceType": "Observation", "x": ' + "[" * 5000, "broken JSON"),
        ('{"resourceType": "Observation", "x": ' + "1" * 5000 + "}", "broken JSON"),
        ('{"id": "d2"}', "no resourceType"),
        ("[1]", "no resourceType"),
        ('{"resourceType": "Bundle", "entry": {"resource": {}}}', "resource"),
    ],
)
def test_broken_lines_are_reported_and_the_rest_is_read(read, line, fact):
    documents, (problem,), _ = read("a.ndjson", ndjson(NOTE, line, LAST))
    assert [document.id for document in documents] == ["d1", "d9"]
    assert fact in problem.fact
    assert problem.line == 2


@pytest.mark.parametrize("entry", [None, {"resource": NOTE}])
def test_a_bundle_entry_that_is_not_a_list_is_not_lost_silently(read, entry):
    bundle_without_list = {"resourceType": "Bundle", "entry": entry}
    (document,), *_ = read("a.ndjson", ndjson(bundle_without_list, LAST))
    assert document.id == "d9"
    documents, problems, notices = read("a.json", json.dumps(bundle_without_list))
    assert documents or problems or notices or entry is None


def test_a_bundle_is_read_up_to_broken_json(read):
    (document,), (problem,), _ = read("a.json", json.dumps(bundle(NOTE, LAST), indent=1)[:-60])
    assert document.id == "d1"
    assert "broken JSON" in problem.fact
    assert problem.record == 2


def test_truncated_gzip_is_reported_after_its_records(read):
    content = ndjson(*(reference(f"d{i}", attachment(str(i * i * 7919))) for i in range(5000)))
    documents, (problem,), _ = read("a.ndjson.gz", gzip.compress(content.encode())[:-1000])
    assert "gzip data ends too early" in problem.fact
    assert 4000 < len(documents) < 5000
    assert problem.line == len(documents)


def test_resources_without_documents_are_counted(read):
    others = [
        {"resourceType": "Patient", "id": "17"},
        {"resourceType": "Observation"},
        {"resourceType": "Patient"},
    ]
    (document,), problems, (notice,) = read("a.json", json.dumps(bundle(*others, LAST)))
    assert document.id == "d9"
    assert notice.fact == "resources without a document were skipped: 1 Observation, 2 Patient"
    assert not problems


def test_a_format_can_be_forced(read):
    (document,), *_ = read("note.txt", ndjson(LAST), format="fhir")
    assert document.text == "Hello"
    for content in ("Hello", "", '{"id": 1}', '{\n"id": 1\n}'):
        documents, problems, _ = read("note.txt", content, format="fhir")
        assert documents == []
        assert len(problems) == 1
