"""The opening of a text, and the labels that precede a passage in the input of a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.segment import opening, with_labels
from capr.segment.passages import OPENING_LENGTH

WORDS = st.sampled_from(["a", "of", "gout", "\u00e9t\u00e9", "arthritis,", "hyperuricaemia.", "x" * 90, "y" * 250])
BLANKS = st.sampled_from([" ", "\n", "\n\n", "  ", "\t", "\r\n", "\u00a0"])
TEXTS = st.lists(st.tuples(WORDS, BLANKS), max_size=80).map(
    lambda pairs: "".join(word + blank for word, blank in pairs)
)
PARTS = st.text(st.characters(exclude_characters="|", exclude_categories=["Cs"]), max_size=20)


def test_an_opening_contains_the_first_words():
    text = "Gout is a form of arthritis. It is treated with rest."
    assert opening(text, text.index("It")) == "Gout is a form of arthritis."


def test_the_start_of_a_text_has_no_opening():
    assert opening("Gout is a form of arthritis.", 0) == ""
    assert opening("\n \n Gout is a form of arthritis.", 4) == ""
    assert opening("", 0) == ""


def test_white_space_becomes_a_single_space():
    text = "  Gout\n\nis\ta\r\nform  of\u00a0arthritis.\n\nRest helps."
    assert opening(text, text.index("Rest")) == "Gout is a form of arthritis."


def test_an_opening_ends_with_a_complete_word():
    text = "word " * 100
    assert opening(text, 500) == " ".join(["word"] * 40)
    assert opening("xy" + text, 500) == " ".join(
        ["xyword"] + ["word"] * 38
    )  # the 40th word would end after 200 characters
    assert opening("xy" * 99 + "z word", 205) == "xy" * 99 + "z"


@pytest.mark.parametrize("blank", ["\n", "\t", "\r\n", "\u00a0"])
def test_any_white_space_ends_a_word(blank):
    text = f"longword{blank}" * 100
    assert opening(text, len(text)) == " ".join(["longword"] * (200 // len(f"longword{blank}")))


def test_an_opening_contains_a_word_that_ends_at_its_limit():
    text = "a" * 150 + " " + "b" * 49 + " and more"
    assert opening(text, 205) == text[:200]
    assert opening("a" * 150 + " " + "b" * 50 + " and more", 205) == "a" * 150


def test_a_single_word_that_is_too_long_gives_an_empty_opening():
    assert opening("a" * 300 + " b", 301) == ""


@pytest.mark.parametrize("begin", [199, 200])
def test_an_opening_ends_where_the_passage_begins(begin):
    text = "a" * (begin - 1) + " " + "b" * 100
    assert opening(text, begin) == "a" * (begin - 1)


@given(TEXTS, st.integers(0, 1000))
def test_an_opening_has_as_many_complete_words_as_fit(text, choice):
    starts = [i for i in range(len(text)) if not text[i].isspace() and (i == 0 or text[i - 1].isspace())]
    begin = starts[choice % len(starts)] if starts else 0
    words, end = [], 0
    for word in text[:begin].split():
        end = text.index(word, end) + len(word)
        if end > OPENING_LENGTH:
            break
        words.append(word)
    assert opening(text, begin) == " ".join(words)


@given(TEXTS, st.integers(0, 1000))
def test_an_opening_does_not_depend_on_the_text_after_it(text, begin):
    begin = min(begin, len(text))
    assert opening(text, begin) == opening(text[: max(begin, OPENING_LENGTH + 1)], begin)
    assert len(opening(text, begin)) <= min(begin, OPENING_LENGTH)


def test_labels_precede_a_text():
    assert with_labels("Rest and ice.", "Gout", "Treatment") == "Gout | Treatment | Rest and ice."
    assert with_labels("Rest and ice.", "", "Treatment", "") == "Treatment | Rest and ice."
    assert with_labels("Rest and ice.") == with_labels("Rest and ice.", "", "") == "Rest and ice."
    assert with_labels("", "Gout") == "Gout"


@given(PARTS, st.lists(PARTS, max_size=4))
def test_labels_and_text_can_be_separated_again(text, labels):
    expected = [part for part in (*labels, text) if part]
    assert with_labels(text, *labels) == " | ".join(expected)
    assert (with_labels(text, *labels).split(" | ") if expected else []) == expected
