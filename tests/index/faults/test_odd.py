"""Odd documents and queries give an answer or a `CaprError`, and no character of a text changes."""

import pytest

import capr.index.embedded.views
from capr.documents import Annotation, CaprError, Document, Span


@pytest.fixture
def library(worker, memory):
    with worker.open_library(memory / "library", worker.FakeEncoder()) as library:
        yield library


@pytest.fixture(scope="module")
def filled(worker, sound):
    """A library with documents, which no test changes."""
    with worker.open_library(sound) as library:
        yield library


def check_stored(library, document):
    """Add a document; check that the library returns it unchanged and is intact."""
    outcome = library.add(document)
    assert (outcome.added, outcome.problems) == (1, [])
    assert library.document(document.id) == document
    assert library.add(document).unchanged == 1
    check = library.verify()
    assert (check.problems, check.notices, check.documents) == ([], [], 1)
    assert list(library.documents()) == [document]
    for hit in library.search("fever cough", 5):
        assert hit.text == document[hit.passage.span]
        assert all(hit[span] == document[span] for span in hit.highlights)


LINE = "Nothing else was to be seen on that day, and so it went on. "
TEXTS = {
    "nothing": "",
    "blanks": " \n\t\r\n \x0b\x0c ",
    "one letter": "a",
    "a line of a million characters": "Fever. " + LINE * 17_000 + "Cough.",
    "a word of a million characters": "fever" * 200_000,
    "a million blanks": " " * 1_000_000,
    "a million line breaks": "fever\n" + "\n" * 1_000_000 + "cough",
    "no letters": "1234 ... 5678 !!! --- 90% :-) " * 1000,
    "only punctuation": "?!.,;:" * 1000,
    "NUL characters": "fever\x00and\x00\x00cough. \x00",
    "only NUL characters": "\x00" * 5000,
    "control characters": "".join(map(chr, range(32))) + "fever" + "".join(map(chr, range(127, 160))),
    "astral characters": "fever \U0001f912 and \U0001d400\U0001d401 cough \U0010ffff. " * 300,
    "combining characters": "fe\u0301ver cou\u0308gh e" + "\u0301" * 5000,
    "right to left": "\u202efever\u202c \u05d7\u05d5\u05dd \u0633\u0639\u0627\u0644 cough " * 200,
    "Chinese": "患者发热咳嗽三天。" * 2000,
    "byte order marks": "\ufefffever\ufeff cough\ufeff",
    "line ends": "fever\r\ncough\rpain\u2028chest\u2029knee\x85foot\n",
    "headings only": "PLAN:\nHISTORY:\nALLERGIES:\n" * 500,
    "characters that grow in lower case": "İSTANBUL FEVER İİİ ẞ ﬁ ŉ COUGH " * 300,
    "not characters": "\ufffe\uffff\U0001fffe fever \ufdd0",
    "SQL": "'; DROP TABLE document; -- fever %s ? :name \" `",
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_odd_text_is_returned_character_for_character(library, name):
    check_stored(library, Document("odd", TEXTS[name]))


def test_a_large_document_is_returned_character_for_character(library, faults):
    millions = 50 if faults >= 100 else 5
    part = (LINE * 40 + "\n\n") * 20 + "Fever and a cough.\n"
    text = "".join(f"PLAN {number}:\n{part}" for number in range(millions * 1_000_000 // len(part)))
    assert len(text) > (millions - 1) * 1_000_000
    library._given_encoder = None
    document = Document("large", text)
    assert library.add(document).added == 1
    assert library.document("large") == document
    for hit in library.search("fever cough", 5):
        assert hit.text == document[hit.passage.span]
    if faults >= 100:
        assert library.verify().problems == []


def test_lone_surrogates_are_a_problem_of_that_document_only(library):
    odd = [
        Document("a\ud800", "fever"),
        Document("text", "fever \udfff"),
        Document("title", "fever", "\ud83d"),
        Document("value", "fever", "", {"patient": "\udc00"}),
        Document("name", "fever", "", {"\udc00": "p"}),
        Document("deep", "fever", "", {"list": [{"a": ["\ud800"]}]}),
        Document("said", "fever", "", {}, (Annotation("section", Span(0, 5), {"heading": "\ud800"}),)),
    ]
    outcome = library.add([Document("first", "fever"), *odd, Document("last", "fever")])
    assert outcome.added == 2
    assert len(outcome.problems) == len(odd)
    assert {document.id for document in library.documents()} == {"first", "last"}
    assert all(problem.fix for problem in outcome.problems)
    str(outcome.problems[0]).encode()
    assert library.verify().problems == []


IDS = (
    "'",
    '"',
    'it\'s "one"',
    "a\nb",
    "\n",
    "a\r\nb\tc",
    "/",
    "../../etc/passwd",
    "a/b\\c",
    "x" * 10_000,
    "\x00",
    "a\x00b",
    "%",
    "?",
    "\U0001f912",
    "é",
    "e\u0301",
    "-1",
    "None",
    "; DROP TABLE document;",
    "a=b",
    "@file",
    "*",
)


def test_odd_ids_are_distinct_and_can_be_found_replaced_and_removed(library):
    ids = [id for id in IDS if id.strip()]
    outcome = library.add([Document(id, f"fever of number {number}") for number, id in enumerate(ids)])
    assert (outcome.added, outcome.problems) == (len(ids), [])
    for number, id in enumerate(ids):
        assert library.document(id).text == f"fever of number {number}"
        if not id.startswith("@") and "*" not in id:  # these mean a file and a pattern
            assert [hit.document for hit in library.search("fever", filters={"document": [id]})] == [id]
    assert {hit.document for hit in library.search("fever", 100)} == set(ids)
    assert library.add([Document(id, "cough") for id in ids], replace=True).replaced == len(ids)
    assert library.verify().problems == []
    assert library.remove(ids[::2]) == len(ids[::2])
    assert [document.id for document in library.documents()] == ids[1::2]
    assert library.verify().problems == []


@pytest.mark.parametrize("id", ["", " ", "\n", "\u2003"])
def test_an_empty_id_is_a_problem(library, id):
    outcome = library.add([Document(id, "fever"), Document("good", "fever")])
    assert (outcome.added, len(outcome.problems)) == (1, 1)


METADATA = {
    "lists": {"list": [1, [2, [3, [None]]], {"a": [{}]}], "empty": [], "none": [None, None]},
    "dictionaries": {"dict": {"a": {"b": {"c": None}}}, "empty": {}},
    "None": {"none": None, "patient": None, "date": None},
    "numbers": {"int": 10**40, "float": 1.5e300, "negative": -0.1, "zero": 0, "patient": 7, "date": 2020},
    "booleans": {"true": True, "false": False},
    "texts": {"quote": "'\"", "lines": "a\nb\r\n", "nul": "a\x00b", "long": "x" * 100_000, "blank": " ", "empty": ""},
    "names": {
        "": "a",
        " ": "b",
        "a=b": "c",
        "a\nb": "d",
        "x" * 1000: "e",
        "document": "other",
        "day": "x",
        "id": 5,
        "entity": "e",
        "aspect": "PLAN",
        "section": "y",
        "without": "negated",
    },
    "dates": {"date": "2020-13-99"},
    "odd dates": {"date": "20-1-1 or so"},
    "many": {f"name {number}": number for number in range(1000)},
    "long list": {"codes": [f"c{number}" for number in range(5000)]},
    "doubles": {"list": ["a", "A", "a ", " a"], "type": ["Note", "note"]},
    "deep": {"deep": [[[[[[[[[[[[[[[[[[[["bottom"]]]]]]]]]]]]]]]]]]]]},
}


@pytest.mark.parametrize("name", METADATA)
def test_odd_metadata_is_returned_unchanged(library, name):
    document = Document("odd", "PLAN: fever and cough.", "A title\nof lines \x00", METADATA[name])
    check_stored(library, document)
    assert library.search("fever")[0].metadata == METADATA[name]
    library.stats()
    assert library.add(Document("odd", "cough", "", {}), replace=True).replaced == 1
    assert library.verify().problems == []
    assert library.remove("odd") == 1
    assert library.verify().problems == []


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, b"bytes", object, 1 + 2j, {1: {2: 3}}, (1, (2,))]
)
def test_metadata_that_is_not_json_is_kept_in_some_form_or_refused(library, value):
    try:
        outcome = library.add(Document("odd", "fever", "", {"value": value}))
    except CaprError:
        return
    assert outcome.added + len(outcome.problems) == 1
    assert library.verify().problems == []
    library.search("fever")


# --- queries ---

# Packed lines: one query for each line would take several pages.
QUERIES = [
    "", " ", "\n", "\x00", "a", "?", "!!!", "...", "?!.,;:()[]{}<>|\\/^~*&%$#@=`'", '"', '""', '"""', '" "', '"!"', "+",
    "-", ":", "a:", ":b", '-"', '+"', '"-', "patient:", "patient:x", 'patient:"', 'patient:""', 'patient:" "', "+-", "-+",
    "--", "++a", "--a", "@", "@/etc/passwd", "patient:@/etc/passwd", 'patient:"@/etc/passwd"', "+patient:@/etc/passwd",
    "-patient:@/etc/passwd", "document:@/etc/passwd", "id:@x", "date:@/etc/passwd", "date:2020..x", "date:x..y", "date:..",
    "date:2020", "date:2020-01..", "date:9999-99-99", "date:0000", "date:2020-13-45..2020-99", "-date:2020..2021",
    "+date:2020", "without:x", "without:negated", "-without:negated", "section:plan", "aspect:", "aspect:x", "-aspect:plan",
    "entity:", "entity:fever", 'entity:"heart attack"', "-entity:fever", "text:fever", "title:note", "heading:plan",
    'text:"dry cough"', 'text:"!"', "text:!", "-text:fever", "unknown:value", "http://x.y/z?a=b", "a:b:c:d", "12:30", "AND",
    "OR NOT", "fever AND", "(fever", "fever)", "fever~2", "fev*", "*", "?:?", "[1 TO 2]", "{a TO b}", "fever^1000",
    "\\", '\\"', "患者发热", "发热 咳嗽", "患" * 5000, "жар и кашель", "\u202efever", "\U0001f912", "fe\u0301ver", "\ufeff",
    "\ud800", "fever \udfff", '"\ud800"', "patient:\ud800", "fever\x00cough", "İ", "ẞ", "x" * 70, "fever " * 16_667,
    "x" * 100_000, " ".join(f"word{n}" for n in range(10_000)), '"' + "fever " * 2000 + '"', "+fever " * 5000,
    "-fever " * 5000, '"a" ' * 5_000, '"' * 100_001, "patient:p1 " * 5000, "-" * 100_000, ":" * 100_000, "a:" * 50_000,
    "not having fever without cough", "fever -fever", "+fever -fever", "'; DROP TABLE document; --",
    *(f"+w{n}" for n in range(3)), " ".join(f"+w{n}" for n in range(3000)), " ".join(f"-w{n}" for n in range(3000)),
    " ".join(f'"w{n} w{n + 1}"' for n in range(3000)),
]  # fmt: skip


def fault_of(library, query, **options):
    """Return the error of a search, unless it has a fix; None if the search gives an answer."""
    try:
        library.search(query, 5, **options).as_json()
    except CaprError as error:
        return None if "Fix: " in str(error) else str(error)
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_any_query_gives_an_answer_or_an_error_with_a_fix(filled, faults, mode):
    queries = [query for query in QUERIES if mode == "hybrid" or len(query) < 1000 or faults >= 100]
    wrong = {query[:60]: fault for query in queries if (fault := fault_of(filled, query, mode=mode))}
    assert wrong == {}


def test_a_query_reads_no_file(filled, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("pd3\n")
    paths = []
    read = capr.index.filters.Path.read_text
    monkeypatch.setattr(
        capr.index.filters.Path, "read_text", lambda path, *options: paths.append(str(path)) or read(path, *options)
    )
    for name in ("patient", "document", "id", "date", "type", "Patient", "+patient", "-patient", "section"):
        for query in (f"{name}:@{secret}", f'{name}:"@{secret}"', f'{name}:" @{secret}"', f"cough {name}:@{secret}"):
            assert fault_of(filled, query) is None
    assert str(secret) not in paths


@pytest.mark.parametrize("k", [0, -1, 10_001, 10**9, -(10**30)])
def test_an_invalid_k_is_an_error(filled, k):
    with pytest.raises(CaprError, match=r"Fix: "):
        filled.search("fever", k)


@pytest.mark.parametrize("k", [1, 2, 37, 10_000])
def test_any_valid_k_is_answered(filled, k):
    for group in (None, "document", "patient"):
        assert 0 < len(filled.search("fever cough", k, group=group)) <= k


# Packed lines: one filter for each line would take a page.
@pytest.mark.parametrize(
    "filters",
    ["", "=", "patient", "patient=", "=p1", "!=", "patient!=", "date=x..y", "date=2020..x", "date=2020", "date!=2020",
     "date!=2020..2021", "patient=@/nowhere", "patient=@/", "patient=@", "without=", "without=x", "without=negated",
     "without!=negated", ["patient=p1", "bad"], [""], [], {}, {"patient": None}, {"patient": []}, {"patient": [[]]},
     {"": "x"}, {" ": "x"}, {"patient": {"a": 1}}, {"date": 2020}, {"date": "..", "x": "y"}, {"without": ["negated", "x"]},
     {"date": ["2020", "2021"]}, {"patient": "\ud800"}, {"\ud800": "x"}, {"patient": "\x00"}, {"patient": "x" * 100_000},
     {"patient": [f"p{n}" for n in range(5000)]}, {"section": ""}, {"entity": "x"}, {"day": "x"}, {"document": "d1"}, 5, [5],
     {5: 6}, {None: None}, b"patient=p1", [b"x"], [None]],
    ids=lambda value: ascii(value)[:40],
)  # fmt: skip
def test_odd_filters_give_an_answer_or_an_error_with_a_fix(filled, filters):
    for mode in ("lexical", "dense"):
        assert fault_of(filled, "fever cough", filters=filters, mode=mode) is None


@pytest.mark.parametrize(
    "options", [{"mode": "x"}, {"mode": ""}, {"fusion": "x"}, {"group": "x"}, {"rerank": True}, {"mode": None, "k": 0}]
)
def test_unknown_options_are_errors(filled, options):
    with pytest.raises(CaprError, match=r"Fix: "):
        filled.search("fever", **options)


def test_odd_numbers_of_neighbours_are_answered(filled):
    for count in (0, 1, 10_000):
        for hit in filled.search("fever", 3, neighbours=count):
            assert len(hit.neighbours) <= 5
    for count in (-1, 10**6, 10**20, "1", 1.5):
        with pytest.raises(CaprError, match=r"neighbours is .* Fix: "):
            filled.search("fever", 3, neighbours=count)


def test_an_empty_library_answers(worker, library):
    assert library.add([]).added == 0
    for mode in ("hybrid", "lexical", "dense"):
        assert library.search("fever", mode=mode).hits == ()
    check = library.verify()
    assert (check.problems, check.notices) == ([], [])
    assert library.stats().documents == 0
    assert list(library.documents()) == []
    assert library.remove(["nobody"]) == 0
    library.compact()
    assert library.verify().problems == []


def test_a_library_answers_after_all_documents_were_removed(worker, library):
    library.add([worker.make(f"d{number}", 1) for number in range(5)])
    assert library.remove([f"d{number}" for number in range(5)]) == 5
    for _ in range(2):
        for mode in ("hybrid", "lexical", "dense"):
            assert library.search("fever", mode=mode, filters={"patient": "pd1"}).hits == ()
        assert library.verify().problems == []
        library.compact()
    assert library.add(worker.make("d1", 2)).added == 1
    assert library.search("markd1v2p0")[0].document == "d1"
    assert library.verify().problems == []


def test_empty_documents_can_be_added_replaced_and_removed(library):
    for _ in range(2):
        assert library.add([Document("a", ""), Document("b", " \n"), Document("c", "")], replace=True).problems == []
        assert library.search("fever").hits == ()
        assert library.verify().problems == []
        assert library.add([Document("a", "fever"), Document("b", "")], replace=True).replaced == 2
        assert [hit.document for hit in library.search("fever")] == ["a"]
        assert library.verify().problems == []
        library.compact()
        assert library.verify().problems == []
        assert library.remove(["a", "b", "c"]) == 3


def test_the_same_document_several_times_in_one_call_is_added_once(worker, library):
    document = worker.make("d1", 1)
    outcome = library.add([document, document, worker.make("d1", 2), document])
    assert (outcome.added, outcome.unchanged, len(outcome.problems)) == (1, 2, 1)
    outcome = library.add([worker.make("d1", 2), worker.make("d1", 3), worker.make("d1", 3)], replace=True)
    assert library.document("d1") == worker.make("d1", 3)
    assert library.verify().problems == []
