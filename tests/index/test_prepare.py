"""The text that an encoder reads for a passage."""

import pytest

from capr import Document
from capr.annotate.mentions import annotator
from capr.index.prepare import prepare, wording

TITLE = "Discharge summary: kidney injury"


def wordings(text, **options):
    document = Document("n1", text, TITLE, **options)
    return [wording(TITLE, entry) for entry in prepare(document, annotator(with_tagger=False), b"").entries]


def test_an_encoder_reads_a_passage_under_the_title():
    assert wordings("PLAN: Stop vancomycin and give fluids.") == [f"{TITLE} | PLAN: Stop vancomycin and give fluids."]


@pytest.mark.parametrize("text", ["SOCIAL HISTORY: ___", "ALLERGIES: None known", "FAMILY HISTORY:\n-"])
def test_a_passage_with_few_words_beside_its_heading_gets_no_title(text):
    assert wordings(text) == [text]


def test_a_passage_of_few_words_without_a_heading_gets_no_title():
    assert wordings("As above.") == ["As above."]
    assert wordings("Kidneys are normal.") == [f"{TITLE} | Kidneys are normal."]
