"""HL7 v2: the texts of MDM and ORU messages, with batches, framing and other segments around them."""

import base64
import gzip

import pytest

import capr

PID = "PID|1||MRN7^^^HOSP^MR~999^^^SSA||Doe^Jane^Q||19700101|F"
OBR = "OBR|1|PL1^EHR|FL1^RIS|24627-2^CT Chest^LN|||20260314"


def message(*segments, kind="ORU^R01^ORU_R01", control="MSG1", end="\r"):
    header = rf"MSH|^~\&|RIS|HOSP^1.2.3^ISO|EHR|HOSP|20260314093000+0100||{kind}|{control}|P|2.5.1"
    return end.join((header, *segments, ""))


def observation(text, kind="FT", name="G^Report"):
    return f"OBX|1|{kind}|{name}||{text}||||||F"


def embedded(content, encoding="Base64", kind="TEXT^plain"):
    data = base64.b64encode(content.encode()).decode() if encoding == "Base64" else content
    return observation(f"RIS^{kind}^{encoding}^{data}", "ED")


LAST = message(PID, "OBR|1||FL9", observation("last"), control="MSG9")
REPORT = message(
    PID,
    "PV1|1|I|3B",
    OBR,
    r"OBX|1|TX|F^Findings||Lungs clear.\.br\ 5 mm \T\ stable \F\ \S\ \R\ \E\ ||||||F",
    "OBX|2|TX|F^Findings||T 38.5\u00a0°C \t🩺||||||F",
    "OBX|3|FT|I^Impression||No PE.~“Follow up”||||||F",
    "OBX|4|NM|S^Size||5|mm|||||F",
)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize("name", ["m.hl7", "m.dat", "m.txt"])
def test_a_radiology_report_is_read(read, tmp_path, name, end):
    (document,), problems, (notice,) = read(name, REPORT.replace("\r", end))
    assert (document.id, document.title) == ("FL1", "CT Chest")
    findings = "Lungs clear.\n 5 mm & stable | ^ ~ \\ \nT 38.5\u00a0°C \t🩺"
    assert document.text == findings + "\nNo PE.\n“Follow up”"
    assert [(a.kind, a.value, document[a.span]) for a in document.annotations] == [
        ("section", {"heading": "Findings"}, findings),
        ("section", {"heading": "Impression"}, "No PE.\n“Follow up”"),
    ]
    assert document.metadata == {
        "source": name,
        "file": name,
        "message": "ORU^R01",
        "sending_facility": "HOSP",
        "patient": "MRN7",
        "patient_name": "Jane Doe",
        "birth_date": "1970-01-01",
        "sex": "F",
        "type": "CT Chest",
        "date": "2026-03-14",
    }
    assert not problems
    assert notice.fact == "values and messages without text were skipped: 1 NM values"
    stream = capr.read(tmp_path / name)
    list(stream)
    assert stream.formats == {"hl7": 1}


def test_a_discharge_summary_is_read(read):
    txa = "TXA|1|DS^Discharge summary|TX|202603140915||||||||DOC7^EHR||||||AU"
    content = message(PID, txa, observation("Line 1", "TX", ""), observation("Line 2", "TX", ""), kind="MDM^T02")
    (document,), problems, _ = read("m.hl7", content)
    assert (document.id, document.text) == ("DOC7", "Line 1\nLine 2")
    assert document.metadata["date"] == "2026-03-14T09:15:00"
    assert document.metadata["message"] == "MDM^T02"
    assert document.annotations == ()
    assert document.metadata["type"] == "Discharge summary"
    assert not problems


def test_batches_and_mllp_frames_are_read(read):
    batch = "FHS|^~\\&|A\rBHS|^~\\&|B\r" + REPORT + LAST + "BTS|2\rFTS|1\r"
    frames = "".join(f"\x0b{content}\x1c\r" for content in (REPORT, LAST))
    for content in (batch, frames, "\ufeff" + REPORT + "\r\n" + LAST):
        documents, problems, _ = read("m.dat", content)
        assert [document.id for document in documents] == ["FL1", "FL9"]
        assert not problems


def test_each_order_is_a_document(read):
    blood = ["OBR|1|P1|F1|B^Blood count|||20200101", observation("5", "NM")]
    first = ["OBR|2|P2|F2|C^CT|||20210101", observation("one")]
    second = ["OBR|3|P3||X^X-ray", observation("two")]
    third = ["OBR|4|||U^Ultrasound", observation("three")]
    documents, problems, _ = read("m.hl7", message(PID, *blood, *first, *second, *third))
    assert [(document.id, document.title, document.text, document.metadata["date"]) for document in documents] == [
        ("F2", "CT", "one", "2021-01-01"),
        ("P3", "X-ray", "two", "2026-03-14T09:30:00+01:00"),
        ("MSG1#3", "Ultrasound", "three", "2026-03-14T09:30:00+01:00"),
    ]
    assert not problems


def test_each_report_belongs_to_its_patient(read):
    segments = [segment for i in "AB" for segment in (f"PID|1||{i}", f"OBR|1||F{i}|C^CT", observation(f"of {i}"))]
    documents, *_ = read("m.hl7", message(*segments))
    reports = [(document.id, document.text, document.metadata["patient"]) for document in documents]
    assert reports == [("FA", "of A", "A"), ("FB", "of B", "B")]


def test_each_txa_is_a_document(read):
    segments = [segment for i in "12" for segment in (f"TXA|1|DS|TX|||||||||D{i}", observation(f"text {i}"))]
    documents, *_ = read("m.hl7", message(PID, *segments, kind="MDM^T02"))
    assert [(document.id, document.text) for document in documents] == [("D1", "text 1"), ("D2", "text 2")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (r"\H\bold\N\ a\.sp\b\.sp+2\c\.in+4\d\.ce\e", "bold a\nb\n\ncd\ne"),
        (r"a\.sk3\b", "a   b"),
        (r"\XE9\ \X0D0A\.", "é \r\n."),
        (r"\XC3A9\.", "é."),
        (r"\Zlocal\ \C2842\ ", r"\Zlocal\ \C2842\ "),
        (r"\\server\share and 5\10", r"\\server\share and 5\10"),
        (r"5\10 mg\.br\next \T\ last", "5\\10 mg\nnext & last"),
        (r"a\.sp99999999999999999999\b", None),
        (r"a\.sp" + "9" * 5000 + r"\b", None),
        ("  a^b&c  ", "  a^b&c  "),
    ],
)
def test_escape_sequences_are_resolved(read, value, text):
    (document, last), *_ = read("m.hl7", message(PID, OBR, observation(value)) + LAST)
    assert text is None or document.text == text
    assert last.id == "FL9"


def test_other_separators_are_read(read):
    content = "MSH#*!$%#RIS#HOSP#E#H#20260314##ORU*R01#M1#P#2.3\rPID#1##7*x!8\rOBR#1##F1*z#C*CT\r"
    (document,), problems, _ = read("m.txt", content + "OBX#1#TX#A##a$F$b$S$c$R$d$E$e$T$f$.br$|^~\\\r")
    assert (document.id, document.title, document.metadata["patient"]) == ("F1", "CT", "7")
    assert document.text == "a#b*c!d$e%f\n|^~\\"
    assert not problems


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        (embedded("Größe\r\n“ok”"), "Größe\r\n“ok”"),
        (embedded("<h1>A</h1><p>B</p>", kind="text^HTML"), "A\n\nB\n"),
        (embedded("Negative", "A"), "Negative"),  # not encoded, although it is valid base64
        (embedded("48656c6c6f", "Hex"), "Hello"),
        (observation("J18^Pneumonia^I10~J45^Asthma^I10", "CWE"), "Pneumonia\nAsthma"),
        (observation("free", ""), "free"),
        (observation("positive", "ST"), "positive"),
    ],
)
def test_every_kind_of_value_is_read(read, segment, text):
    (document,), problems, _ = read("m.hl7", message(PID, OBR, segment))
    assert document.text == text
    assert not problems


@pytest.mark.parametrize("segment", ["NTE|1|L|see addendum", "ADD|, and the rest"])
def test_a_text_outside_obx_is_not_lost_silently(read, segment):
    (document,), problems, notices = read("m.hl7", message(PID, OBR, observation("begin"), segment))
    words = segment.split("|")[-1]
    assert problems or notices or words in document.text


@pytest.mark.parametrize(
    "skipped_segment", ["OBX|2|NM|H^Hb||7|g/dL", "OBX|2|TX|D^Other||wrong||||||D", 'OBX|2|TX|D^Other||""']
)
@pytest.mark.parametrize("next_segment", ["NTE|1|L|CRITICAL, called to ward", "ADD|the rest of it"])
def test_a_comment_on_a_skipped_value_does_not_join_another_text(read, skipped_segment, next_segment):
    content = message(PID, OBR, observation("Benign nevus.", name="D^Diagnosis"), skipped_segment, next_segment)
    (document,), problems, (notice,) = read("m.hl7", content)
    assert document.text == "Benign nevus."
    assert "1 comments and continuations of these" in notice.fact
    assert not problems


def test_the_hl7_null_is_no_value(read):
    (document,), *_ = read("m.hl7", message('PID|1||""||""||""|""', OBR, observation("a")))
    assert {"patient", "patient_name", "birth_date", "sex"}.isdisjoint(document.metadata)


@pytest.mark.parametrize(
    ("segment", "fact", "record"),
    [
        ("and a line of the text itself", "the line has no segment type: 'and a line", None),
        ("FEV1 was low", "the line has no segment type", None),
        ("obx|2|TX|||lower case", "the line has no segment type", None),
        ("MSH|^~", "the MSH segment has no separators: 'MSH|^~'", None),
        ("MSH of the lung", "MSH of the lung", None),
        (embedded("%%%", "Base64").replace("JSUl", "%%%"), "bad base64", 1),
        (embedded("%PDF-1.4 cut", kind="AP^PDF"), "not a readable PDF", 1),
        (embedded(r"{\rtf1 x}", kind="TEXT^RTF"), "type 'text/rtf' is not text", 1),
        (observation(r"\E\\E\srv\E\x.pdf^RIS", "RP"), r"only links to its text, '\\\\srv\\x.pdf'", 1),
    ],
)
def test_broken_segments_are_reported_and_the_rest_is_read(read, segment, fact, record):
    content = message(PID, OBR, observation("one"), segment) + LAST
    documents, (problem,), _ = read("m.hl7", content)
    assert [document.text for document in documents] == ["one", "last"]
    assert fact in problem.fact
    assert (problem.line, problem.record) == (5, record)


@pytest.mark.parametrize(
    "segments", [(PID, OBR, observation("HERE")), (PID.replace("Jane", "HERE"), OBR, observation("a"))]
)
def test_an_undefined_byte_affects_only_its_report(read, segments):
    documents, problems, _ = read("m.hl7", (message(*segments) + LAST).encode().replace(b"HERE", b"\x81"))
    assert [document.id for document in documents] == ["FL9"]
    assert [(problem.record, "0x81" in problem.fact) for problem in problems] == [("FL1", True)]


def test_a_segment_outside_a_message_is_reported(read):
    (document,), (problem,), _ = read("m.hl7", PID + "\r" + LAST)
    assert document.id == "FL9"
    assert (problem.fact, problem.line) == ("the segment PID belongs to no message", 1)


def test_messages_without_text_are_counted(read):
    _, problems, (notice,) = read("m.hl7", message(PID, kind="ADT^A01") * 2 + LAST)
    assert notice.fact == "values and messages without text were skipped: 2 ADT^A01 without text"
    assert not problems


def test_truncated_gzip_is_reported_after_its_records(read):
    content = "".join(message(PID, f"OBR|1||F{i}", observation(str(i * i * 7919))) for i in range(3000))
    documents, (problem,), _ = read("m.hl7.gz", gzip.compress(content.encode())[:-600])
    assert "gzip data ends too early" in problem.fact
    assert 2000 < len(documents) < 3000
    assert problem.line // 4 == len(documents)


def test_a_note_about_msh_is_not_hl7_unless_forced(read):
    text = "MSH: normal.\nACTH: pending.\n"
    (document,), *_ = read("note.txt", text)
    assert document.text == text
    (document,), *_ = read("note.txt", LAST, format="hl7")
    assert document.text == "last"
