import random
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capr.annotate import Concept, Vocabulary
from capr.annotate.gazetteer import Gazetteer
from capr.text.names import is_abbreviation, key

SHIPPED = Gazetteer(Vocabulary.load())
NAMES = (
    "heart attack",
    "chronic kidney disease",
    "Crohn's disease",
    "Sjögren syndrome",
    "MI",
    "COPD",
    "beta-blocker",
    "asthma",
    "type 2 diabetes mellitus",
    "Ménière disease",
    "fever",
    "shortness of breath",
    "N/V",
    "Lasix",
)
OWN = Gazetteer(Vocabulary(added=[Concept(f"L:{i}", "term", name) for i, name in enumerate(NAMES)]))


def names_in(text: str, gazetteer: Gazetteer = SHIPPED) -> list[str]:
    return [name.span.of(text) for name in gazetteer.find(text)]


def assert_valid_spans(text: str, gazetteer: Gazetteer) -> None:
    """Check that spans are whole words of the text, not empty, in order, without overlap, and name their concepts."""
    end = 0
    for span, concept in gazetteer.find(text):
        assert end <= span.begin < span.end <= len(text)
        assert not text[span.begin - 1 : span.begin].isalnum()
        assert not text[span.end : span.end + 1].isalnum()
        assert span.of(text) == span.of(text).strip()
        assert key(span.of(text)).lower() in {key(name).lower() for name in concept.names}
        end = span.end


@given(st.text())
@example("fever\x00fever")
@example("İ fever ﷺ fever")
@example("😀🩺 heart attack")
@example("heart attack’s")
def test_spans_are_valid_in_any_text(text):
    assert_valid_spans(text, SHIPPED)


def spellings(name: str) -> st.SearchStrategy[str]:
    """Return spellings of a name as texts have them."""
    forms = [name, name.replace("'", "’"), name.replace("'s", ""), f"{name}'s", f"{name}’s"]
    forms += [name.replace("é", "e\u0301").replace("è", "e\u0300").replace("ö", "o\u0308")]
    if is_abbreviation(name):
        forms += [f"{name}s"] if name.isalpha() else []
    else:
        forms += [name.upper(), name.title().replace("'S", "'s"), name.lower(), f"{name}s"]
    gaps = [" ", "  ", "\t", "-", "\n", "\n   ", " \n", "\r\n", "\u00a0", "–", "‑", "   "]
    written = st.builds(lambda form, gap: form.replace(" ", gap), st.sampled_from(forms), st.sampled_from(gaps))
    return written.filter(lambda form: not re.search(r"[a-z]\s*\n\s*[A-Z]", form))  # would be items of a list


@given(st.lists(st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), spellings(name))), max_size=6))
@example([("heart attack", "heart\r\nattack")])
@example([("heart attack", "heart\u00a0attack")])
@example([("heart attack", "heart   attack")])
@example([("heart attack", "heart‑attack")])
@example([("Ménière disease", "Me\u0301nie\u0300re disease")])
@example([("MI", "MI's")])
def test_every_spelling_of_a_name_is_found(pairs):
    text = "😀 . ".join(["", *(written for _, written in pairs), ""])
    matches = list(OWN.find(text))
    assert [name.concept.name for name in matches] == [name for name, _ in pairs]
    assert [name.span.of(text).removesuffix("'s").removesuffix("’s") for name in matches] == [
        written.removesuffix("'s").removesuffix("’s") for _, written in pairs
    ]


@given(st.lists(st.sampled_from([*NAMES, "of", "no", ",", ".", "-", "\n", "\n\n", " ", "’s", "'", "_", "😀", "é"])))
def test_spans_are_valid_in_texts_of_names_and_punctuation(parts):
    assert_valid_spans("".join(parts), OWN)
    assert_valid_spans(" ".join(parts), SHIPPED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acute myocardial infarction", ["acute myocardial infarction"]),
        ("chronic obstructive pulmonary disease", ["chronic obstructive pulmonary disease"]),
        ("type 2 diabetes mellitus", ["type 2 diabetes mellitus"]),
        ("heart attack attack", ["heart attack"]),
        ("chest pain, pain", ["chest pain", "pain"]),
    ],
)
def test_longest_name_wins(text, expected):
    assert names_in(text) == expected


def test_incomplete_longer_name_does_not_hide_a_shorter_name():
    own = Gazetteer(Vocabulary(added=[Concept("L:1", "t", "red"), Concept("L:2", "t", "red hot iron bar")]))
    assert names_in("red hot iron", own) == ["red"]
    assert names_in("red hot, iron bar", own) == ["red"]
    assert names_in("red hot iron bar", own) == ["red hot iron bar"]


@pytest.mark.parametrize("text", ["feverish", "xfever", "fever3", "asthmaé", "COPDx", "2COPD", "heart attackers"])
def test_part_of_a_word_is_no_name(text):
    assert names_in(text, OWN) == []


@pytest.mark.parametrize("text", ["(fever)", "fever.", "'fever'", "fever/COPD", "fever's", "😀fever", "fever,COPD"])
def test_punctuation_is_not_part_of_a_word(text):
    assert names_in(text, OWN)[0].startswith("fever")


def test_abbreviations_keep_their_case():
    assert names_in("MI, not mi and not Mi; COPD, not Copd", OWN) == ["MI", "COPD"]
    assert names_in("MIs", OWN) == ["MIs"]
    assert names_in("MIS MISs", OWN) == []


def test_names_in_capitals_are_found():
    assert names_in("HEART ATTACK AND FEVER", OWN) == ["HEART ATTACK", "FEVER"]


@pytest.mark.parametrize(
    "text", ["heart\nattack", "heart \n  attack", "heart-\nattack", "heart\r\nattack", "heart \r\n\tattack"]
)
def test_name_may_continue_on_the_next_line(text):
    assert names_in(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "heart, attack",
        "heart. attack",
        "heart\n\nattack",
        "heart\r\n\r\nattack",
        "heart\n \nattack",
        "heart; attack",
        "heart: attack",
        "heart (attack",
        "heart\n- attack",
        "heart | attack",
        "heart_attack",
        "heart. Attack",
        "heartattack",
    ],
)
def test_name_does_not_cross_a_border(text):
    assert names_in(text) == []


def test_definition_in_the_text_overrides_the_vocabulary():
    concept = SHIPPED.vocabulary.find("asthma")
    text = "PE and PEs, XY, pe, MI"
    assert [(n.span.of(text), n.concept.name) for n in SHIPPED.find(text, {"PE": None, "XY": concept})] == [
        ("XY", "asthma"),
        ("MI", "myocardial infarction"),
    ]


def test_longer_name_wins_over_a_defined_abbreviation():
    ms = SHIPPED.vocabulary.find("multiple sclerosis")
    text = "MS treated, takes MS Contin"
    assert [n.concept.kind for n in SHIPPED.find(text, {"MS": ms})] == ["disease", "drug"]


def test_every_name_of_the_vocabulary_is_found_as_a_whole():
    names = [n for c in SHIPPED.vocabulary for n in c.names if SHIPPED.vocabulary.find(n) is c]
    sample = random.Random(1).sample(names, 5000)
    missing = [name for name in sample if [f.span.of(name) for f in SHIPPED.find(name)] != [name]]
    assert len(missing) < 100  # such as "17p13.1 deletion syndrome"


def test_astral_characters_do_not_shift_spans():
    text = "🩺" * 1000 + " fever"
    ((span, _),) = SHIPPED.find(text)
    assert span == (1001, 1006)


@pytest.mark.parametrize("text", ["", " ", "....", "\x00\x01\x1f\x7f", "\u200b\ufeff", "_", "’s", "---\n---"])
def test_text_without_words_has_no_names(text):
    assert names_in(text) == []


def test_long_words_and_many_names_are_fast():
    start = time.perf_counter()
    assert names_in("a" * 1_000_000) == []
    assert len(names_in("fever, " * 100_000)) == 100_000
    assert time.perf_counter() - start < 5
