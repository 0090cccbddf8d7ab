import pytest

import capr
from capr.documents import Document
from capr.segment import passages, structure
from capr.segment import sentences as cut_sentences


def test_passages_respect_sections_and_sentences():
    note = Document("n", "PLAN: Rest today. Drink much water.\nFOLLOW-UP: In one week.")
    found = passages(note, max_words=5)
    assert [(p.heading, note[p.span]) for p in found] == [
        ("PLAN", "PLAN: Rest today."),
        ("PLAN", "Drink much water."),
        ("FOLLOW-UP", "FOLLOW-UP: In one week."),
    ]
    assert note[found[0].body] == " Rest today."
    assert note[found[1].body] == "Drink much water."
    assert [p.document for p in found] == ["n"] * 3


def test_parts_of_a_section_share_a_passage_while_they_fit():
    note = Document("n", "PHYSICAL EXAM:\nLungs: clear.\nAbdomen: soft.\nPLAN: rest.")
    assert [p.heading for p in passages(note)] == ["PHYSICAL EXAM", "PLAN"]
    small = passages(note, max_words=4)
    assert [(p.heading, note[p.span]) for p in small] == [
        ("PHYSICAL EXAM", "PHYSICAL EXAM:\nLungs: clear."),
        ("PHYSICAL EXAM | Abdomen", "Abdomen: soft."),
        ("PLAN", "PLAN: rest."),
    ]


def test_a_sentence_that_is_too_long_is_cut_between_words():
    note = Document("n", "one two three four five six seven")
    assert [note[p.span] for p in passages(note, max_words=3)] == ["one two three", "four five six", "seven"]


def test_neighbours_know_each_other():
    note = Document("n", "PLAN: A b.\nDIET: C d.\nCOURSE: E f.")
    first, second, third = passages(note)
    assert (first.previous, first.next) == (None, second.span)
    assert (second.previous, second.next) == (first.span, third.span)
    assert third.next is None


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        passages(Document("n", "text"), max_words=0)


def test_the_sample_corpus_in_passages():
    documents = capr.samples.documents()
    found = [passage for document in documents for passage in passages(document)]
    words = [len(document[p.span].split()) for document in documents for p in passages(document)]
    assert max(words) <= 250
    assert len(found) > 1000


def test_the_structure_flags_of_cdv():
    text = "Gout\nIt hurts. A lot.\n- rest\n- ice\n"
    flags = structure(text, cut_sentences(text))
    assert [tuple(flag) for flag in flags] == [
        (1, 1, 0, 0, 0, 1, 0),
        (0, 1, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 1, 0),
        (0, 1, 1, 0, 0, 1, 0),
        (0, 1, 1, 0, 0, 1, 1),
    ]
