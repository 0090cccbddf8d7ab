"""What is read together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Document, Span
from capr.search.paragraphs import cut, stretches

NOTE = Document("n", "HISTORY: He fell.\n\nPLAN: Rest.\n\nDIET: Salt.\n\n" + "LABS: Sodium 140. " * 60 + "\n")


def spans(some):
    return [[one.passage.span for one in part.paragraphs] for part in some]


def test_short_neighbours_are_read_together_up_to_a_length():
    paragraphs = list(cut([NOTE]))
    alone = [one.passage.span for one in paragraphs]
    assert spans(stretches(paragraphs))[0] == alone[:3]  # the fourth would be too long with them
    assert spans(stretches(paragraphs, 1)) == [[span] for span in alone]
    (whole,) = stretches(paragraphs[:3])
    assert whole.text == NOTE.text[: alone[2].end]


def test_only_neighbours_of_one_document_are():
    other = Document("o", "PLAN: Go.\n")
    paragraphs = list(cut([NOTE, other]))
    found = stretches([paragraphs[2], paragraphs[-1], paragraphs[0]])  # in any order, and one between them is missing
    assert spans(found) == [[paragraphs[0].passage.span], [paragraphs[2].passage.span], [paragraphs[-1].passage.span]]
    assert stretches([]) == []


@given(st.integers(-5, 60), st.integers(-5, 60))
def test_what_is_read_is_placed_in_the_passage_where_it_begins(begin, end):
    (part,) = stretches(list(cut([NOTE]))[:3])
    paragraph, span = part.placed(Span(begin, end))
    assert paragraph in part.paragraphs
    assert span.end <= paragraph.passage.span.end
    if 0 <= begin < end <= len(part.text) and part.text[begin:end].strip() == part.text[begin:end]:
        assert paragraph.passage.span.begin <= span.begin < span.end
        assert NOTE[span] == part.text[begin:end][: span.end - span.begin]


@pytest.mark.parametrize("length", [1, 100, 1000, 10_000])
def test_nothing_is_lost_or_read_twice(length):
    paragraphs = list(cut([NOTE]))
    found = [span for some in spans(stretches(paragraphs, length)) for span in some]
    assert found == [one.passage.span for one in paragraphs]
