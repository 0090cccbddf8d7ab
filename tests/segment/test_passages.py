import pytest

import capr
from capr.documents import Document
from capr.segment import passages, structure
from capr.segment import sentences as split_sentences


def test_passages_respect_sections_and_sentences():
    note = Document("n", "PLAN: Rest today. Drink much water.\nFOLLOW-UP: In one week.")
    results = passages(note, max_words=5)
    assert [(passage.heading, note[passage.span]) for passage in results] == [
        ("PLAN", "PLAN: Rest today."),
        ("PLAN", "Drink much water."),
        ("FOLLOW-UP", "FOLLOW-UP: In one week."),
    ]
    assert note[results[0].body] == " Rest today."
    assert note[results[1].body] == "Drink much water."
    assert [passage.document for passage in results] == ["n"] * 3


def test_subsections_share_a_passage_if_they_fit():
    note = Document("n", "PHYSICAL EXAM:\nLungs: clear.\nAbdomen: soft.\nPLAN: rest.")
    assert [passage.heading for passage in passages(note)] == ["PHYSICAL EXAM", "PLAN"]
    short_passages = passages(note, max_words=4)
    assert [(passage.heading, note[passage.span]) for passage in short_passages] == [
        ("PHYSICAL EXAM", "PHYSICAL EXAM:\nLungs: clear."),
        ("PHYSICAL EXAM | Abdomen", "Abdomen: soft."),
        ("PLAN", "PLAN: rest."),
    ]


def test_a_sentence_that_is_too_long_is_cut_between_words():
    note = Document("n", "one two three four five six seven")
    assert [note[passage.span] for passage in passages(note, max_words=3)] == [
        "one two three",
        "four five six",
        "seven",
    ]


def test_a_passage_has_the_spans_of_its_neighbours():
    note = Document("n", "PLAN: A b.\nDIET: C d.\nCOURSE: E f.")
    first, second, third = passages(note)
    assert (first.previous, first.next) == (None, second.span)
    assert (second.previous, second.next) == (first.span, third.span)
    assert third.next is None


def test_a_limit_below_one_is_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        passages(Document("n", "text"), max_words=0)


def test_the_passages_of_the_sample_corpus_keep_the_limit():
    documents = capr.samples.documents()
    lengths = [len(document[passage.span].split()) for document in documents for passage in passages(document)]
    assert max(lengths) <= 250
    assert len(lengths) > 1000


def test_structure_flags_agree_with_cdv():
    text = "Gout\nIt hurts. A lot.\n- rest\n- ice\n"
    flags = structure(text, split_sentences(text))
    assert [tuple(flag) for flag in flags] == [
        (1, 1, 0, 0, 0, 1, 0),
        (0, 1, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 1, 0),
        (0, 1, 1, 0, 0, 1, 0),
        (0, 1, 1, 0, 0, 1, 1),
    ]
