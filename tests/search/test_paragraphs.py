"""Paragraphs: neighbouring passages that a reader reads together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Document, Span
from capr.search.paragraphs import cut_documents, join_passages

NOTE = Document("n", "HISTORY: He fell.\n\nPLAN: Rest.\n\nDIET: Salt.\n\n" + "LABS: Sodium 140. " * 60 + "\n")


def spans(paragraphs):
    return [[item.passage.span for item in paragraph.passages] for paragraph in paragraphs]


def test_short_neighbours_are_joined_up_to_a_length():
    items = list(cut_documents([NOTE]))
    single_spans = [item.passage.span for item in items]
    assert spans(join_passages(items))[0] == single_spans[:3]  # the fourth would be too long with them
    assert spans(join_passages(items, 1)) == [[span] for span in single_spans]
    (whole,) = join_passages(items[:3])
    assert whole.text == NOTE.text[: single_spans[2].end]


def test_only_neighbours_of_one_document_are_joined():
    other = Document("o", "PLAN: Go.\n")
    items = list(cut_documents([NOTE, other]))
    groups = join_passages([items[2], items[-1], items[0]])  # out of order, without the second passage
    assert spans(groups) == [[items[0].passage.span], [items[2].passage.span], [items[-1].passage.span]]
    assert join_passages([]) == []


@given(st.integers(-5, 60), st.integers(-5, 60))
def test_an_answer_is_located_in_the_passage_where_it_begins(begin, end):
    (paragraph,) = join_passages(list(cut_documents([NOTE]))[:3])
    item, span = paragraph.locate(Span(begin, end))
    assert item in paragraph.passages
    assert span.end <= item.passage.span.end
    if 0 <= begin < end <= len(paragraph.text) and paragraph.text[begin:end].strip() == paragraph.text[begin:end]:
        assert item.passage.span.begin <= span.begin < span.end
        assert NOTE[span] == paragraph.text[begin:end][: span.end - span.begin]


@pytest.mark.parametrize("length", [1, 100, 1000, 10_000])
def test_every_passage_is_in_one_paragraph(length):
    items = list(cut_documents([NOTE]))
    grouped_spans = [span for group in spans(join_passages(items, length)) for span in group]
    assert grouped_spans == [item.passage.span for item in items]
