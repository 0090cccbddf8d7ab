"""Groups of paragraphs that a reader reads together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Document, Span
from capr.search.paragraphs import cut_documents, group_paragraphs

NOTE = Document("n", "HISTORY: He fell.\n\nPLAN: Rest.\n\nDIET: Salt.\n\n" + "LABS: Sodium 140. " * 60 + "\n")


def spans(groups):
    return [[paragraph.passage.span for paragraph in group.paragraphs] for group in groups]


def test_short_neighbours_are_grouped_up_to_a_length():
    paragraphs = list(cut_documents([NOTE]))
    single_spans = [paragraph.passage.span for paragraph in paragraphs]
    assert spans(group_paragraphs(paragraphs))[0] == single_spans[:3]  # the fourth would be too long with them
    assert spans(group_paragraphs(paragraphs, 1)) == [[span] for span in single_spans]
    (whole,) = group_paragraphs(paragraphs[:3])
    assert whole.text == NOTE.text[: single_spans[2].end]


def test_only_neighbours_of_one_document_are_grouped():
    other = Document("o", "PLAN: Go.\n")
    paragraphs = list(cut_documents([NOTE, other]))
    groups = group_paragraphs(
        [paragraphs[2], paragraphs[-1], paragraphs[0]]
    )  # out of order, without the second paragraph
    assert spans(groups) == [[paragraphs[0].passage.span], [paragraphs[2].passage.span], [paragraphs[-1].passage.span]]
    assert group_paragraphs([]) == []


@given(st.integers(-5, 60), st.integers(-5, 60))
def test_an_answer_is_located_in_the_paragraph_where_it_begins(begin, end):
    (group,) = group_paragraphs(list(cut_documents([NOTE]))[:3])
    paragraph, span = group.locate(Span(begin, end))
    assert paragraph in group.paragraphs
    assert span.end <= paragraph.passage.span.end
    if 0 <= begin < end <= len(group.text) and group.text[begin:end].strip() == group.text[begin:end]:
        assert paragraph.passage.span.begin <= span.begin < span.end
        assert NOTE[span] == group.text[begin:end][: span.end - span.begin]


@pytest.mark.parametrize("length", [1, 100, 1000, 10_000])
def test_every_paragraph_is_in_one_group(length):
    paragraphs = list(cut_documents([NOTE]))
    grouped_spans = [span for group in spans(group_paragraphs(paragraphs, length)) for span in group]
    assert grouped_spans == [paragraph.passage.span for paragraph in paragraphs]
