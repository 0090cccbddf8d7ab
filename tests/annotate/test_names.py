import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capr.annotate.names import WORD, abbreviation, is_abbreviation, is_ordinary, key, ordinary, plain, singular


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Heart Attack", "heart attacks"),
        ("beta-blocker", "beta blockers"),
        ("Crohn's disease", "Crohn disease"),
        ("Crohn’s disease", "CROHN'S DISEASE"),
        ("Sjögren syndrome", "sjogren Syndromes"),
        ("Me\u0301nie\u0300re disease", "Ménière disease"),  # accents as characters of their own, as macOS writes them
        ("metastases", "metastasis"),
        ("biopsies", "biopsy"),
        ("DVTs", "DVT"),
        ("DVT's", "DVT"),
        ("ﬁbrosis", "fibrosis"),
        ("  heart \n attack ", "heart attack"),
    ],
)
def test_two_spellings_of_one_name(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("MI", "mi"), ("AIDS", "aids"), ("heart attack", "heartattack"), ("type 1 diabetes", "type 2 diabetes")],
)
def test_two_names(one, other):
    assert key(one) != key(other)


@pytest.mark.parametrize("name", ["MI", "COPD", "tPA", "N/V", "DVTs", "H1N1"])
def test_what_is_an_abbreviation(name):
    assert is_abbreviation(name)


@pytest.mark.parametrize("name", ["", "M", "mi", "Mi", "Crohn", "ABCDEF", "HELLP syndrome", "A b"])
def test_what_is_no_abbreviation(name):
    assert not is_abbreviation(name)


@pytest.mark.parametrize(
    ("plural", "one"),
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
def test_the_singular(plural, one):
    assert singular(plural) == one


def test_an_abbreviation_loses_the_plural_s_and_nothing_else():
    assert [abbreviation(word) for word in ("MIs", "MS", "AIDS", "Is", "tPA")] == ["MI", "MS", "AIDS", "Is", "tPA"]


@given(st.text())
@example("İ’s")
@example("'s")
@example("ﷺ")
def test_every_text_has_a_key_of_words_with_single_blanks(text):
    found = key(text)
    assert found == " ".join(found.split())
    assert bool(found) == bool(WORD.search(text))


@given(st.from_regex(r"[A-Za-z]{1,12}( [A-Za-z]{1,12}){0,3}", fullmatch=True))
def test_case_and_hyphens_do_not_count(name):
    if not any(is_abbreviation(form) for form in (name, name.upper())):
        assert key(name) == key(name.upper()) == key(name.replace(" ", "-")) == key(f" {name}, ")


@given(st.text(st.characters(categories=("Lu", "Ll", "Nd")), min_size=1))
def test_a_plain_word_has_no_case(word):
    assert plain(word) == plain(word).lower()


def test_ordinary_words_mean_no_entity():
    assert all(is_ordinary(word) for word in ("lead", "Leads", "abdomen", "ABNORMAL"))
    assert not any(is_ordinary(word) for word in ("lead poisoning", "asthma", "", "MI"))
    assert len(ordinary()) > 500
    assert not any(line.startswith("#") or not line.strip() for line in ordinary())
