import gzip
from collections import Counter
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capr.annotate import Concept, Vocabulary
from capr.annotate.table import read_table
from capr.documents import CaprError
from capr.text.names import key

SHIPPED = Vocabulary.load()


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a user's table and returns its path."""

    def write(content: str | bytes, name: str = "own.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    text = gzip.decompress(files("capr.annotate").joinpath("vocabulary.tsv.gz").read_bytes()).decode()
    first, *others = text.removesuffix("\n").split("\n")
    assert first == "code\tkind\tname\tsynonyms\tcodes\tkeys"
    return [row.split("\t") for row in others]


def test_table_is_valid(rows):
    assert {len(row) for row in rows} == {6}
    assert {row[1] for row in rows} == {"disease", "symptom", "drug"}
    assert len({row[0] for row in rows}) == len(rows) == len(SHIPPED)
    assert all(row[2] == row[2].strip() and row[2] for row in rows)


def test_keys_match_the_names(rows):
    mismatches = []
    for code, _, name, synonyms, _, keys in rows:
        names = [name, *(synonyms.split("|") if synonyms else [])]
        row_keys = keys.split("|")
        if len(row_keys) != len(names) or any(k and k != key(n) for k, n in zip(row_keys, names, strict=False)):
            mismatches.append(code)
    assert mismatches == []


def test_every_key_has_one_concept(rows):
    counts = Counter(name for row in rows for name in {*row[5].split("|")} - {""})
    assert [name for name, count in counts.items() if count > 1] == []


def test_names_of_a_concept_are_distinct(rows):
    duplicates = [(row[0], k) for row in rows for k, count in Counter(row[5].split("|")).items() if k and count > 1]
    assert duplicates == []


def test_vocabulary_covers_all_systems_and_kinds():
    assert sum(len(concept.names) for concept in SHIPPED) >= 50_000
    systems = Counter(code.partition(":")[0] for c in SHIPPED for code in {c.code, *c.codes})
    assert all(systems[system] > 1000 for system in ("MESH", "ICD10CM", "HP", "DOID", "MONDO", "DRUGBANK"))
    assert {concept.kind for concept in SHIPPED} == {"disease", "symptom", "drug"}


@pytest.mark.parametrize(
    ("lay", "name"),
    [
        ("heart attack", "myocardial infarction"),
        ("high blood pressure", "hypertension"),
        ("hives", "urticaria"),
        ("kidney stones", "kidney calculi"),
        ("shingles", "herpes zoster"),
        ("mini-stroke", "transient ischemic attack"),
        ("nosebleed", "epistaxis"),
        ("pinkeye", "conjunctivitis"),
        ("piles", "hemorrhoids"),
        ("athlete's foot", "tinea pedis"),
        ("Lou Gehrig's disease", "amyotrophic lateral sclerosis"),
        ("flu", "influenza"),
        ("German measles", "rubella"),
    ],
)
def test_lay_names_are_found(lay, name):
    assert SHIPPED.find(lay).name == name


@pytest.mark.parametrize(
    ("brand", "drug"),
    [
        ("Tylenol", "acetaminophen"),
        ("Lasix", "furosemide"),
        ("ADVIL", "ibuprofen"),
        ("Lipitor", "atorvastatin"),
        ("zoloft", "sertraline"),
        ("Coumadin", "warfarin"),
        ("Glucophage", "metformin"),
        ("Plavix", "clopidogrel"),
    ],
)
def test_brand_names_are_found(brand, drug):
    concept = SHIPPED.find(brand)
    assert (concept.name, concept.kind) == (drug, "drug")


@pytest.mark.parametrize(
    "name", ["myocardial infarction", "Heart-Attacks", "HEART ATTACK", "MI", "mi", "MIs", " heart\nattack "]
)
def test_spelling_variants_are_found(name):
    assert SHIPPED.find(name).code == "MESH:D009203"


@pytest.mark.parametrize("name", ["GOUT", "FEVER", "COUGH", "HIVES", "Gout", "gout"])
def test_capitals_do_not_turn_a_word_into_an_abbreviation(name):
    assert SHIPPED.find(name) is not None
    assert SHIPPED.find(name) is SHIPPED.find(name.lower())


def test_abbreviation_is_found_in_any_case():
    assert SHIPPED.find("tPA").name == SHIPPED.find("tpa").name == SHIPPED.find("TPA").name == "alteplase"


@pytest.mark.parametrize("name", ["", "   ", "zorblax", "心脏病", ".*", "heart", "x" * 10_000, "\x00"])
def test_unknown_name_is_not_found(name):
    assert SHIPPED.find(name) is None
    assert SHIPPED.synonyms(name) == []


def test_synonyms_exclude_the_name_itself():
    assert SHIPPED.synonyms("heart attacks")[0] == "myocardial infarction"
    assert "heart attack" not in SHIPPED.synonyms("heart attacks")
    assert {"heart attack", "MI"} <= {*SHIPPED.synonyms("myocardial infarction")}
    assert "MI" not in SHIPPED.synonyms("MI")
    assert "MI" not in SHIPPED.synonyms("mi")


@pytest.mark.parametrize("code", ["MESH:D009203", "ICD10CM:I21", "icd10cm:i21", "HP:0001658", "DOID:5844"])
def test_codes_of_all_systems_are_found(code):
    assert SHIPPED.by_code(code).name == "myocardial infarction"


def test_every_concept_is_found_by_its_own_code():
    assert [c.code for c in SHIPPED if SHIPPED.by_code(c.code) is not c] == []
    assert SHIPPED.by_code("MESH:D0") is None
    assert SHIPPED.by_code("") is None


def test_nearly_every_name_is_found():
    missing = [name for concept in SHIPPED for name in concept.names if SHIPPED.find(name) is not concept]
    assert len(missing) < 50  # such as ER+ and ER- breast cancer, which have the same key


def test_system_and_names():
    concept = Concept("L:1", "sign", "a", ("b", "c"))
    assert (concept.system, concept.names) == ("L", ("a", "b", "c"))
    assert Concept("17", "sign", "a").system == ""
    assert concept.as_json() == {"system": "L", "code": "L:1", "name": "a"}


def names(prefix: str, limit: int = 10) -> list[str]:
    return [suggestion.name for suggestion in SHIPPED.suggest(prefix, limit)]


def test_suggestions_by_prefix():
    assert names("heart att") == ["heart attack"]
    assert [name.lower().startswith("asthm") for name in names("asthm", 3)] == [True] * 3
    assert len(names("a")) == 10
    assert len(names("a", 3)) == 3
    assert names("a", 0) == []


def test_suggestions_by_a_later_word():
    suggestions = SHIPPED.suggest("infarction", 50)
    assert "myocardial infarction" in [suggestion.concept.name for suggestion in suggestions]


@pytest.mark.parametrize(
    "prefix",
    ["hart attack", "heaart attack", "haert attack", "hearz attack", "heart attak", "eart attack", "xheart att"],
)
def test_suggestions_after_one_typing_error(prefix):
    assert names(prefix) == ["heart attack"]


def test_no_suggestion_after_two_typing_errors():
    assert "heart attack" not in names("hrt attakc")


@pytest.mark.parametrize("prefix", ["asthma", "MI", "gout", "stroke", "hives", "Tylenol", "diabetes", "cough", "PE"])
def test_exact_name_comes_first(prefix):
    assert names(prefix)[0].lower() == prefix.lower()


def test_concept_is_suggested_once():
    suggestions = SHIPPED.suggest("myocardial infarct", 100)
    assert len({suggestion.concept.code for suggestion in suggestions}) == len(suggestions) > 5


@pytest.mark.parametrize("prefix", ["", " ", "\t\n", "qqqqqq", "a" * 10_000, "心脏病", ".*", "(?", "[a-", "\\", "\x00"])
def test_no_suggestions(prefix):
    assert names(prefix) == []


@pytest.mark.parametrize(
    "prefix",
    [" heart attack ", "heart  attack", "heart   \t attack", "Heart-Att", "HEART\nATT"],
)
def test_suggestions_ignore_white_space_hyphens_and_case(prefix):
    assert names(prefix) == ["heart attack"]


def test_suggestions_ignore_accents_and_apostrophes():
    assert names("Ménière")[0] == names("meniere’s")[0] == names("Meniere's dis")[0] == "Meniere disease"
    assert names("Me\u0301nie\u0300re")[0] == "Meniere disease"


def test_line_break_does_not_join_two_names():
    assert not {"Addison disease", "allergic disease"} & {*names("disease\na")}


@given(st.text(max_size=30), st.integers(-1, 30))
@example("heart att\U0010ffff", 5)
@example("\ud800", 5)
def test_number_of_suggestions_is_limited(prefix, limit):
    suggestions = SHIPPED.suggest(prefix, limit)
    assert len(suggestions) <= max(limit, 0)
    assert all(suggestion.name in suggestion.concept.names for suggestion in suggestions)


OWN = "code,name,synonyms,kind,codes\nLOCAL:1,zorblax syndrome,MI | zorb sign,finding,ICD10CM:X99|HP:9\nLOCAL:2,heart attack\n"


def test_names_of_a_user_take_precedence(table):
    vocabulary = Vocabulary.load(table(OWN))
    own = Concept("LOCAL:1", "finding", "zorblax syndrome", ("MI", "zorb sign"), ("ICD10CM:X99", "HP:9"))
    assert vocabulary.find("Zorb-signs") == vocabulary.find("MI") == own
    assert vocabulary.by_code("hp:9") == vocabulary.by_code("LOCAL:1") == own
    assert vocabulary.find("heart attacks").code == "LOCAL:2"
    assert vocabulary.find("heart attacks").kind == "term"
    assert vocabulary.find("myocardial infarction").code == "MESH:D009203"
    assert len(vocabulary) == len(SHIPPED) + 2
    assert SHIPPED.find("zorb sign") is None
    assert vocabulary.suggest("zorblx")[0].concept == own


@pytest.mark.parametrize("prefix", ["MI", "heart att"])
def test_names_of_a_user_are_suggested_first(table, prefix):
    assert Vocabulary.load(table(OWN)).suggest(prefix)[0].concept.system == "LOCAL"


def test_later_table_takes_precedence(table):
    first, second = table("code,name\nA:1,zorb\n", "1.csv"), table("code,name\nB:1,zorb\n", "2.csv")
    assert Vocabulary.load(first, second).find("zorb").code == "B:1"
    assert Vocabulary.load(str(second), str(first)).find("zorb").code == "A:1"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("own.csv", "code,name\nL:1,a b\n", Concept("L:1", "term", "a b")),
        ("own.csv", "\ufeffcode,name\r\nL:1,a b\r\n", Concept("L:1", "term", "a b")),
        ("own.csv", " Name ,CODE\n a b , L:1 \n\n", Concept("L:1", "term", "a b")),
        ("own.csv", 'code,name\nL:1,"a, ""b"" c"', Concept("L:1", "term", 'a, "b" c')),
        ("own.csv", 'code,name\nL:1,"a\nb"\n', Concept("L:1", "term", "a\nb")),
        ("own.csv", "code,name,synonyms\nL:1,a,|b | c||\n", Concept("L:1", "term", "a", ("b", "c"))),
        ("own.csv", "code,name,kind\nL:1,é,lab\n", Concept("L:1", "lab", "é")),
        ("own.tsv", "code\tname\nL:1\ta, b\n", Concept("L:1", "term", "a, b")),
        ("OWN.TSV", "code\tname\nL:1\ta, b\n", Concept("L:1", "term", "a, b")),
        ("own.csv", "code,name\nL:1,a\u2028b\n", Concept("L:1", "term", "a\u2028b")),
        ("own.csv", "code,name\nL:1,a\x0cb\n", Concept("L:1", "term", "a\x0cb")),
    ],
)
def test_valid_table_is_read(table, name, content, expected):
    assert read_table(table(content, name)) == [expected]


@pytest.mark.parametrize(
    ("content", "line", "fact", "fix"),
    [
        ("code,name\nL:1,a\n,b\n", 3, "'b' has no code", "give it one"),
        ("code,name\n,\n", 2, "has no code", "give it one"),
        ("code,name\nL:1,a\nL:2,c\nL:1,b\n", 4, "the code L:1 is already in line 2", "make them one row"),
        ("code,name\nL:1,\n", 2, "L:1 has no name", "write its preferred name"),
        ("code,name\nL:1\n", 2, "L:1 has no name", "write its preferred name"),
        ("code,name\nL:1,--\n", 2, "a name without a letter or digit", "write the words as in your texts"),
        ("code,name,synonyms\nL:1,a,b|?\n", 2, "a name without a letter or digit", "write the words as in your texts"),
        ("code,name,colour\nL:1,a,red\n", 1, "the columns are code, name, colour", "begin with a line such as"),
        ("code,title\nL:1,a\n", 1, "the columns are code, title", "begin with a line such as code,name"),
        ("code;name\nL:1;a\n", 1, "the columns are code;name", "begin with a line such as code,name"),
        ("code,name,name\nL:1,a,b\n", 1, "name", "begin with a line such as code,name"),
        ("", 1, "the columns are missing", "begin with a line such as code,name"),
        ("\n", 1, "the columns are missing", "begin with a line such as code,name"),
        ('code,name\nL:1,a\nL:2,"b\n', 3, "not CSV", "close the quotes"),
        ('code,name\nL:1,a\nL:2,"b"c\n', 3, "not CSV", "close the quotes"),
        ("code,name\nL:1,a,b\n", 2, "more fields than the first line", "put quotes around a field"),
        ('code,name\nL:1,"a\nb"\n,x\n', 4, "'x' has no code", "give it one"),
    ],
)
def test_error_of_an_invalid_table_has_line_fact_and_fix(table, content, line, fact, fix):
    path = table(content)
    with pytest.raises(CaprError) as error:
        Vocabulary.load(path)
    message = str(error.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert fact in message
    assert f"Fix: {fix}" in message


def test_error_lists_every_invalid_row(table):
    with pytest.raises(CaprError) as error:
        read_table(table("code,name\n,a\nL:1,b\nL:1,c\nL:2,\n"))
    assert [line.split(": ")[0].split("line ")[1] for line in str(error.value).split("\n")] == ["2", "4", "5"]


@pytest.mark.parametrize("content", [None, b"code,name\nL:1,caf\xe9\n", "code,name\nL:1,a\n".encode("utf-16")])
def test_unreadable_table_is_rejected(tmp_path, content):
    path = tmp_path / "own.csv"
    if content:
        path.write_bytes(content)
    with pytest.raises(CaprError, match="Fix: name a CSV file in UTF-8") as error:
        Vocabulary.load(path)
    assert str(error.value).startswith(f"{path}: cannot be read (")
    with pytest.raises(CaprError, match="Fix: name a CSV file"):
        Vocabulary.load(tmp_path)  # a folder
