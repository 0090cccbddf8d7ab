import random
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capr.annotate import Concept, Vocabulary
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.names import is_abbreviation, key

SHIPPED = Gazetteer(Vocabulary.load())
NAMES = ("heart attack", "chronic kidney disease", "Crohn's disease", "Sjögren syndrome", "MI", "COPD", "beta-blocker",
         "asthma", "type 2 diabetes mellitus", "Ménière disease", "fever", "shortness of breath", "N/V", "Lasix")  # fmt: skip
OWN = Gazetteer(Vocabulary(added=[Concept(f"L:{i}", "term", name) for i, name in enumerate(NAMES)]))


def found(text: str, gazetteer: Gazetteer = SHIPPED) -> list[str]:
    return [name.span.of(text) for name in gazetteer.find(text)]


def check(text: str, gazetteer: Gazetteer) -> None:
    """Spans are ranges of the text, in order, apart, not empty, whole words, and mean what they say."""
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
def test_spans_index_any_text(text):
    check(text, SHIPPED)


def spelled(name: str) -> st.SearchStrategy[str]:
    """A name as texts may write it; each of these is the same name."""
    forms = [name, name.replace("'", "’"), name.replace("'s", ""), f"{name}'s", f"{name}’s"]
    forms += [name.replace("é", "e\u0301").replace("è", "e\u0300").replace("ö", "o\u0308")]
    if is_abbreviation(name):
        forms += [f"{name}s"] if name.isalpha() else []
    else:
        forms += [name.upper(), name.title().replace("'S", "'s"), name.lower(), f"{name}s"]
    gaps = [" ", "  ", "\t", "-", "\n", "\n   ", " \n", "\r\n", "\u00a0", "–", "‑", "   "]
    written = st.builds(lambda form, gap: form.replace(" ", gap), st.sampled_from(forms), st.sampled_from(gaps))
    return written.filter(lambda form: not re.search(r"[a-z]\s*\n\s*[A-Z]", form))  # these are items of a list


@given(st.lists(st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), spelled(name))), max_size=6))
@example([("heart attack", "heart\r\nattack")])
@example([("heart attack", "heart\u00a0attack")])
@example([("heart attack", "heart   attack")])
@example([("heart attack", "heart‑attack")])
@example([("Ménière disease", "Me\u0301nie\u0300re disease")])
@example([("MI", "MI's")])
def test_names_are_found_however_they_are_written(pairs):
    text = "😀 . ".join(["", *(written for _, written in pairs), ""])
    check_own = list(OWN.find(text))
    assert [name.concept.name for name in check_own] == [name for name, _ in pairs]
    assert [name.span.of(text).removesuffix("'s").removesuffix("’s") for name in check_own] == [
        written.removesuffix("'s").removesuffix("’s") for _, written in pairs
    ]


@given(st.lists(st.sampled_from([*NAMES, "of", "no", ",", ".", "-", "\n", "\n\n", " ", "’s", "'", "_", "😀", "é"])))
def test_spans_index_texts_of_names_and_signs(parts):
    check("".join(parts), OWN)
    check(" ".join(parts), SHIPPED)


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
def test_the_longest_name_counts(text, expected):
    assert found(text) == expected


def test_a_longer_name_that_is_not_there_does_not_hide_a_shorter_one():
    own = Gazetteer(Vocabulary(added=[Concept("L:1", "t", "red"), Concept("L:2", "t", "red hot iron bar")]))
    assert found("red hot iron", own) == ["red"]
    assert found("red hot, iron bar", own) == ["red"]
    assert found("red hot iron bar", own) == ["red hot iron bar"]


@pytest.mark.parametrize("text", ["feverish", "xfever", "fever3", "asthmaé", "COPDx", "2COPD", "heart attackers"])
def test_a_name_ends_where_its_word_ends(text):
    assert found(text, OWN) == []


@pytest.mark.parametrize("text", ["(fever)", "fever.", "'fever'", "fever/COPD", "fever's", "😀fever", "fever,COPD"])
def test_signs_are_no_part_of_a_word(text):
    assert found(text, OWN)[0].startswith("fever")


def test_abbreviations_keep_their_case():
    assert found("MI, not mi and not Mi; COPD, not Copd", OWN) == ["MI", "COPD"]
    assert found("MIs", OWN) == ["MIs"]
    assert found("MIS MISs", OWN) == []


def test_all_in_capitals():
    assert found("HEART ATTACK AND FEVER", OWN) == ["HEART ATTACK", "FEVER"]


@pytest.mark.parametrize(
    "text", ["heart\nattack", "heart \n  attack", "heart-\nattack", "heart\r\nattack", "heart \r\n\tattack"]
)
def test_a_name_may_go_on_in_the_next_line(text):
    assert found(text) == [text]


@pytest.mark.parametrize(
    "text",
    ["heart, attack", "heart. attack", "heart\n\nattack", "heart\r\n\r\nattack", "heart\n \nattack", "heart; attack",
     "heart: attack", "heart (attack", "heart\n- attack", "heart | attack", "heart_attack", "heart. Attack", "heartattack"],
)  # fmt: skip
def test_a_name_does_not_reach_across(text):
    assert found(text) == []


def test_abbreviations_mean_what_the_text_says():
    concept = SHIPPED.vocabulary.find("asthma")
    text = "PE and PEs, XY, pe, MI"
    assert [(n.span.of(text), n.concept.name) for n in SHIPPED.find(text, {"PE": None, "XY": concept})] == [
        ("XY", "asthma"),
        ("MI", "myocardial infarction"),
    ]


def test_a_longer_name_counts_more_than_a_defined_abbreviation():
    ms = SHIPPED.vocabulary.find("multiple sclerosis")
    text = "MS treated, takes MS Contin"
    assert [n.concept.kind for n in SHIPPED.find(text, {"MS": ms})] == ["disease", "drug"]


def test_names_of_the_vocabulary_are_found_in_themselves():
    known = [n for c in SHIPPED.vocabulary for n in c.names if SHIPPED.vocabulary.find(n) is c]
    chosen = random.Random(1).sample(known, 5000)
    lost = [name for name in chosen if [f.span.of(name) for f in SHIPPED.find(name)] != [name]]
    assert len(lost) < 100  # such as "17p13.1 deletion syndrome"


def test_astral_characters_before_a_name_do_not_move_it():
    text = "🩺" * 1000 + " fever"
    ((span, _),) = SHIPPED.find(text)
    assert span == (1001, 1006)


@pytest.mark.parametrize("text", ["", " ", "....", "\x00\x01\x1f\x7f", "\u200b\ufeff", "_", "’s", "---\n---"])
def test_nothing_in_nothing(text):
    assert found(text) == []


def test_a_long_word_and_many_names_take_no_time():
    begin = time.perf_counter()
    assert found("a" * 1_000_000) == []
    assert len(found("fever, " * 100_000)) == 100_000
    assert time.perf_counter() - begin < 5
