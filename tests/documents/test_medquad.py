"""MedQuAD's XML in its three dialects."""

import gzip

import pytest

import capr

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
PAIR = (
    '\t<QAPair pid="1">\r\n'
    '\t\t\t<Question qid="0000001-1" qtype="information">What is (are) Adie syndrome ?</Question>\r\n'
    "\t\t\t<Answer>Adie&apos;s pupil – “tonic”.\r\n\r\n\t- large &amp; slow\u00a0🩺</Answer>\r\n"
    "\t</QAPair>\r\n"
)
SECOND = (
    '<QAPair pid="2"><Question qid="0000001-2" qtype="treatment">How to treat it ?</Question>'
    "<Answer>Rest.</Answer></QAPair>"
)
FIRST_ANSWER = "Adie's pupil – “tonic”.\n\n\t- large & slow\u00a0🩺"  # XML parsers turn \r\n into \n


def document(pairs: str = PAIR + SECOND, head: str = HEAD, doctype: str = "") -> str:
    return f"""{head}{doctype}<Document id="0000001" source="GARD" url="https://rarediseases.info.nih.gov/1">\r
<Focus>Adie syndrome</Focus>\r
<FocusAnnotations>\r
\t<UMLS><CUIs><CUI>C0001519</CUI><CUI>C0001520</CUI></CUIs>\r
\t\t<SemanticTypes><SemanticType>T047</SemanticType></SemanticTypes>\r
\t\t<SemanticGroup>Disorders</SemanticGroup></UMLS>\r
\t<Synonyms><Synonym>Holmes-Adie</Synonym><Synonym>Tonic pupil</Synonym></Synonyms>\r
</FocusAnnotations>\r
<QAPairs>\r
{pairs}</QAPairs>\r
</Document>\r
"""


def test_answers_are_the_text_and_questions_its_sections(read):
    (article,), problems, notices = read("0000001.xml", document())
    assert (article.id, article.title) == ("GARD_0000001", "Adie syndrome")
    assert article.text == FIRST_ANSWER + "\n\nRest."
    assert article.metadata == {
        "source": "GARD",
        "file": "0000001.xml",
        "number": "0000001",
        "type": "Health article",
        "url": "https://rarediseases.info.nih.gov/1",
        "entity": "Adie syndrome",
        "cuis": ["C0001519", "C0001520"],
        "semantic_group": "Disorders",
        "synonyms": ["Holmes-Adie", "Tonic pupil"],
    }
    first, second = article.annotated("section")
    assert (article[first.span], article[second.span]) == (FIRST_ANSWER, "Rest.")
    assert first.value == {
        "heading": "What is (are) Adie syndrome ?",
        "aspect": "information",
        "id": "GARD_0000001-1",
        "entity": "Adie syndrome",
    }
    assert not problems
    assert not notices


DOC = """<?xml version="1.0" encoding="UTF-8"?>
<doc docid="0000007" corpus="NINDS" url="http://www.ninds.nih.gov/x.htm">
<doctitle-focus>Holmes-Adie</doctitle-focus>
<umls><cui></cui><semanticType></semanticType><semanticGroup></semanticGroup></umls>
<qaPairs>
<pair pid="1"><question qid="0000007-1" qtype="information">what is it ?</question>
<answer>A disorder.</answer></pair>
</qaPairs></doc>"""
DISEASE_FILE = """<?xml version="1.0" encoding="UTF-8"?>
<DiseaseFile fid="0000358" source="CDC" url="http://www.cdc.gov/x">
<Focus>Holmes-Adie</Focus>
<QAPairs>
<QAPair pid="1"><Question qid="0000358-1" qtype="information">what is it ?</Question>
<Answer>A disorder.</Answer></QAPair>
</QAPairs></DiseaseFile>"""


@pytest.mark.parametrize(
    ("name", "content", "identifier"),
    [
        ("0000007.xml", DOC, "NINDS_0000007"),
        ("0000358.xml", DISEASE_FILE, "CDC_0000358"),
        ("0000358_2.xml", DISEASE_FILE, "CDC_0000358_2"),  # a part of a document has the number of the document
    ],
)
def test_the_other_dialects_are_read(tmp_path, name, content, identifier):
    (tmp_path / name).write_text(content)
    stream = capr.read(tmp_path / name)
    (article,) = stream
    assert stream.formats == {"medquad": 1}
    assert (article.id, article.title, article.text) == (identifier, "Holmes-Adie", "A disorder.")
    assert "cuis" not in article.metadata
    (section,) = article.annotated("section")
    assert section.value["id"] == f"{identifier[: len(identifier.split('_')[0]) + 8]}-1"


def test_medquad_is_recognised_by_content_and_can_be_forced(tmp_path):
    (tmp_path / "a.bin.gz").write_bytes(gzip.compress(document().encode("utf-8-sig")))
    for options in ({}, {"format": "medquad"}):
        stream = capr.read(tmp_path / "a.bin.gz", **options)
        assert [article.id for article in stream] == ["GARD_0000001"]
        assert stream.formats == {"medquad": 1}


BOMB = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
EXTERNAL = '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n'


@pytest.mark.parametrize(
    ("content", "fact", "line"),
    [
        (document(doctype=BOMB).replace("Rest.", "&b;"), "declares entities", 1),
        (document(doctype=EXTERNAL).replace("Rest.", "&a;"), "declares entities", 1),
        (document().replace("Rest.", "x < y"), "malformed XML", 17),
        (document().replace("Rest.", "a&nbsp;b"), "malformed XML", 17),
        (document().replace("Rest.", "\x01"), "malformed XML", 17),
        (document().replace("</QAPairs>", ""), "malformed XML", 18),
        (document()[:-200], "malformed XML", None),
        (b"", "malformed XML", 1),
        (b'{"a": 1}', "malformed XML", 1),
        (document().encode().replace(b"Rest.", b"\x81"), "", None),
        ("<note><to>x</to></note>", "<note> has no <QAPairs>", 1),
    ],
)
def test_broken_xml_is_reported_with_its_line(read, content, fact, line):
    documents, (problem,), _ = read("0000001.xml", content, format="medquad")
    assert documents == []
    assert fact in problem.fact
    assert line is None or problem.line == line


def test_a_broken_file_does_not_stop_the_folder(tmp_path):
    (tmp_path / "0000000.xml").write_text(document()[:-200])
    (tmp_path / "0000001.xml").write_text(document())
    stream = capr.read(tmp_path)
    assert [article.id for article in stream] == ["GARD_0000001"]
    assert stream.errors == 1


@pytest.mark.parametrize(
    ("declared_encoding", "encoding"),
    [("ISO-8859-1", "latin-1"), ("windows-1252", "cp1252"), ("UTF-16", "utf-16"), ("utf-8", "cp1252")],
)
def test_the_declared_encoding_does_not_garble_the_text(read, declared_encoding, encoding):
    head = f'<?xml version="1.0" encoding="{declared_encoding}"?>\n'
    pairs = SECOND.replace("Rest.", "38° café")
    (article,), problems, _ = read("0000001.xml", document(pairs, head).encode(encoding))
    assert article.text == "38° café"
    assert not problems


@pytest.mark.parametrize("declared_encoding", ["shift_jis", "foo"])
def test_an_unknown_encoding_gives_a_document_or_a_problem(read, declared_encoding):
    content = document(head=f'<?xml version="1.0" encoding="{declared_encoding}"?>\n')
    documents, problems, _ = read("0000001.xml", content)
    assert len(documents) + len(problems) == 1


def test_markup_inside_a_question_is_not_cut(read):
    pairs = SECOND.replace("How to treat it ?", "How to <i>treat</i> it ?").replace("Rest.", "<b>Rest</b> well.")
    (article,), *_ = read("0000001.xml", document(pairs))
    (section,) = article.annotated("section")
    assert section.value["heading"] == "How to treat it ?"
    assert article[section.span] == "Rest well."


def test_both_answers_of_a_question_are_read(read):
    (article,), problems, notices = read(
        "0000001.xml", document(SECOND.replace("</Answer>", "</Answer><Answer>Sleep.</Answer>"))
    )
    assert "Rest." in article.text
    assert "Sleep." in article.text or problems or notices


@pytest.mark.parametrize("answer", ["<Answer/>", "<Answer> \n</Answer>", ""])
def test_a_question_without_an_answer_is_reported(read, answer):
    (article,), problems, notices = read(
        "0000001.xml", document(PAIR + SECOND.replace("<Answer>Rest.</Answer>", answer))
    )
    assert article.text == FIRST_ANSWER
    (report,) = [*problems, *notices]
    assert "0000001-2" in f"{report.fact} {report.record}" or "1" in report.fact


def test_a_file_without_pairs_is_reported_as_empty(read):
    (article,), _, (notice,) = read("0000001.xml", document(""))
    assert (article.id, article.text) == ("GARD_0000001", "")
    assert "empty" in notice.fact
