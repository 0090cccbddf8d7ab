"""How a passage is put to an encoder."""

import pytest

from capr import Document
from capr.annotate.mentions import annotator
from capr.search.prepare import prepared, wording

TITLE = "Discharge summary: kidney injury"


def worded(text, **options):
    document = Document("n1", text, TITLE, **options)
    return [wording(TITLE, entry) for entry in prepared(document, annotator(with_tagger=False), b"").entries]


def test_a_passage_stands_under_the_title():
    assert worded("PLAN: Stop vancomycin and give fluids.") == [f"{TITLE} | PLAN: Stop vancomycin and give fluids."]


@pytest.mark.parametrize("text", ["SOCIAL HISTORY: ___", "ALLERGIES: None known", "FAMILY HISTORY:\n-"])
def test_what_says_next_to_nothing_beside_its_heading_is_not_found_by_the_title(text):
    assert worded(text) == [text]


def test_few_words_without_a_heading_are_not_found_by_the_title_either():
    assert worded("As above.") == ["As above."]
    assert worded("Kidneys are normal.") == [f"{TITLE} | Kidneys are normal."]
