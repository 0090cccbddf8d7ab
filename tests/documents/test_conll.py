"""CoNLL: tokens and their tags."""

import gzip

import pytest

import capr

# The form of BC5CDR and NCBI-disease: token, tab, tag.
SENTENCES = (
    "Torsade\tB-Disease\r\nde\tI-Disease\r\npointes\tI-Disease\r\nventricular\tB-Disease\r\n"
    "tachycardia\tI-Disease\r\nin\tO\r\n\r\n\r\n"
    'Naïve\tO\r\n"\tO\r\n5\tO\r\nµg\tO\r\n🩺\tO\r\nselegiline\tB-Chemical'
)
# The form of CoNLL-2003: four columns separated by spaces, and a mark at the start of each document.
DOCUMENTS = """\
-DOCSTART- -X- -X- O

EU NNP B-NP I-ORG
rejects VBZ B-VP O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
"""


def mentions(document) -> list[tuple[str, str]]:
    return [(document[mention.span], mention.value["type"]) for mention in document.annotated("mention")]


@pytest.mark.parametrize("name", ["train.tsv", "train.iob", "train.txt", "train"])
def test_each_sentence_is_a_document_without_docstart(tmp_path, name):
    (tmp_path / name).write_bytes(SENTENCES.encode())
    stream = capr.read(tmp_path / name)
    first, second = stream
    assert stream.formats == {"conll": 2}
    assert (first.id, second.id) == (f"{name}#1", f"{name}#2")
    assert first.text == "Torsade de pointes ventricular tachycardia in\n"
    assert second.text == 'Naïve " 5 µg 🩺 selegiline\n'
    assert mentions(first) == [("Torsade de pointes", "Disease"), ("ventricular tachycardia", "Disease")]
    assert mentions(second) == [("selegiline", "Chemical")]
    assert first.metadata == {"source": name, "file": name}
    assert (stream.errors, stream.problems) == (0, [])


def test_docstart_begins_a_document_of_several_sentences(read):
    (first, second), problems, _ = read("eng.testa", DOCUMENTS)
    assert (first.id, first.text) == ("eng.testa#1", "EU rejects\nPeter Blackburn\n")
    assert (second.id, second.text) == ("eng.testa#2", "BRUSSELS\n")
    assert mentions(first) == [("EU", "ORG"), ("Peter Blackburn", "PER")]
    assert not problems


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-D I-D I-D", ["a b c"]),
        ("I-D I-D O", ["a b"]),
        ("B-D B-D I-D", ["a", "b c"]),
        ("B-D I-C I-C", ["a", "b c"]),
        ("S-D B-D E-D", ["a", "b c"]),
        ("S-D E-D I-D", ["a", "b", "c"]),
        ("B-D O I-D", ["a", "c"]),
    ],
)
def test_iob_and_iobes_tags_are_read(read, tags, expected):
    lines = "".join(f"{token}\t{tag}\n" for token, tag in zip("abc", tags.split(), strict=True))
    (document,), problems, _ = read("a.iob", lines)
    assert [words for words, _ in mentions(document)] == expected
    assert not problems


def test_an_entity_ends_with_its_sentence(read):
    (document,), *_ = read("a.iob", "-DOCSTART-\n\na\tB-D\n\nb\tI-D\n")
    assert mentions(document) == [("a", "D"), ("b", "D")]


def test_a_format_can_be_forced(read):
    (document,), *_ = read("a.dat", "a O\nb O\n", format="conll")
    assert document.text == "a b\n"


@pytest.mark.parametrize(
    "text", ["Blood group: O\nRh positive\n", "Patient is blood group O\n", "Type O\n\nNo fever. Well.\n"]
)
def test_a_note_about_blood_group_o_is_not_conll(tmp_path, text):
    (tmp_path / "note.txt").write_text(text)
    stream = capr.read(tmp_path / "note.txt")
    assert [document.text for document in stream] == [text]
    assert stream.formats == {"text": 1}


@pytest.mark.parametrize("token", ["5\u00a0mg", "\u00a0", "New York", "b\u2009c", "b\x85c", "d\u2028e"])
def test_a_token_with_white_space_is_not_cut(read, token):
    documents, problems, _ = read("a.tsv", f"take\tO\n{token}\tB-Dose\nof\tO\n", format="conll")
    assert problems or mentions(documents[0]) == [(token, "Dose")]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("token", "'token' is not a token and an IOB tag"),
        ("token\tX", r"'token\tX' is not"),
        ("token\tB-", "is not a token and an IOB tag"),
        ("token\tU-Disease", "is not a token and an IOB tag"),
        ("token\tO\textra", "is not a token and an IOB tag"),
        ("\tO", "is not a token and an IOB tag"),
        ("# newdoc id = 7", "is not a token and an IOB tag"),
        ("token\tB-Disease or disorder", "is not a token and an IOB tag"),
    ],
)
def test_a_line_without_a_token_and_tag_is_reported_and_the_rest_is_read(read, line, fact):
    documents, (problem,), _ = read("a.iob", f"a\tO\n{line}\nb\tO\n\nc\tO\n", format="conll")
    assert [document.text for document in documents] == ["a b\n", "c\n"]
    assert fact in problem.fact
    assert problem.line == 2


def test_an_undefined_byte_affects_only_its_sentence(read):
    documents, (problem,), _ = read("a.iob", b"a\tO\n\nbad\x81\tO\n\nc\tO\n")
    assert [document.text for document in documents] == ["a\n", "c\n"]
    assert problem.record == "a.iob#2"
    assert "byte 0x81" in problem.fact


def test_windows_1252_is_read_with_a_notice(read):
    (document,), _, (notice,) = read("a.iob", "38°\tO\ncafé\tO\n".encode("cp1252"))
    assert document.text == "38° café\n"
    assert "the first in line 1" in notice.fact


def test_truncated_gzip_is_reported(read):
    _, (problem,), _ = read("a.iob.gz", gzip.compress(SENTENCES.encode())[:-12], format="conll")
    assert "gzip" in problem.fact


@pytest.mark.parametrize("content", ["", "\n\n", "-DOCSTART- -X- O\n\n"])
def test_a_file_without_tokens_is_reported(read, content):
    documents, problems, notices = read("a.iob", content, format="conll")
    assert documents == []
    assert problems or notices


def test_a_document_id_after_docstart_is_kept(read):
    (document,), problems, notices = read("a.iob", "-DOCSTART- (PMID-1234)\n\na\tO\n", format="conll")
    assert "PMID-1234" in f"{document.id} {document.metadata} {problems} {notices}"
