import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capr.annotate.ordinary_words import is_ordinary, ordinary
from capr.text.names import WORD, abbreviation, is_abbreviation, key, plain, singular


@pytest.mark.parametrize(
    ("name", "other_name"),
    [
        ("Heart Attack", "heart attacks"),
        ("beta-blocker", "beta blockers"),
        ("Crohn's disease", "Crohn disease"),
        ("Crohn’s disease", "CROHN'S DISEASE"),
        ("Sjögren syndrome", "sjogren Syndromes"),
        ("Me\u0301nie\u0300re disease", "Ménière disease"),  # macOS writes accents as separate characters
        ("metastases", "metastasis"),
        ("biopsies", "biopsy"),
        ("DVTs", "DVT"),
        ("DVT's", "DVT"),
        ("ﬁbrosis", "fibrosis"),
        ("  heart \n attack ", "heart attack"),
    ],
)
def test_two_spellings_of_a_name_have_one_key(name, other_name):
    assert key(name) == key(other_name)


@pytest.mark.parametrize(
    ("name", "other_name"),
    [("MI", "mi"), ("AIDS", "aids"), ("heart attack", "heartattack"), ("type 1 diabetes", "type 2 diabetes")],
)
def test_two_names_have_two_keys(name, other_name):
    assert key(name) != key(other_name)


@pytest.mark.parametrize("name", ["MI", "COPD", "tPA", "N/V", "DVTs", "H1N1"])
def test_an_abbreviation_has_two_capitals(name):
    assert is_abbreviation(name)


@pytest.mark.parametrize("name", ["", "M", "mi", "Mi", "Crohn", "ABCDEF", "HELLP syndrome", "A b"])
def test_other_names_are_not_abbreviations(name):
    assert not is_abbreviation(name)


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("fractures", "fracture"),
        ("diagnoses", "diagnosis"),
        ("headaches", "headache"),
        ("rashes", "rash"),
        ("abscesses", "abscess"),
        ("calculi", "calculus"),
        ("allergies", "allergy"),
        ("arthritides", "arthritis"),
        ("virus", "virus"),
        ("abscess", "abscess"),
        ("arthritis", "arthritis"),
        ("gas", "gas"),
        ("", ""),
        ("s", "s"),
    ],
)
def test_a_plural_becomes_a_singular(plural, expected):
    assert singular(plural) == expected


def test_an_abbreviation_loses_only_its_plural_s():
    assert [abbreviation(word) for word in ("MIs", "MS", "AIDS", "Is", "tPA")] == ["MI", "MS", "AIDS", "Is", "tPA"]


@given(st.text())
@example("İ’s")
@example("'s")
@example("ﷺ")
def test_a_key_consists_of_words_with_single_spaces(text):
    result = key(text)
    assert result == " ".join(result.split())
    assert bool(result) == bool(WORD.search(text))


@given(st.from_regex(r"[A-Za-z]{1,12}( [A-Za-z]{1,12}){0,3}", fullmatch=True))
def test_a_key_ignores_case_and_hyphens(name):
    if not any(is_abbreviation(form) for form in (name, name.upper())):
        assert key(name) == key(name.upper()) == key(name.replace(" ", "-")) == key(f" {name}, ")


@given(st.text(st.characters(categories=("Lu", "Ll", "Nd")), min_size=1))
def test_a_plain_word_is_in_lower_case(word):
    assert plain(word) == plain(word).lower()


def test_ordinary_words_do_not_name_an_entity():
    assert all(is_ordinary(word) for word in ("lead", "Leads", "abdomen", "ABNORMAL"))
    assert not any(is_ordinary(word) for word in ("lead poisoning", "asthma", "", "MI"))
    assert len(ordinary()) > 500
    assert not any(line.startswith("#") or not line.strip() for line in ordinary())
