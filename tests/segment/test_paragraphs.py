"""Paragraphs: groups of passages, by heading, uniform, or the whole document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Annotation, CaprError, Document, Span
from capr.segment import passages
from capr.segment.paragraphs import CUTS, Paragraphs, count_headings, paragraph_index

NOTE = Document("1", "Seen today.\n\nALLERGIES:\nNone.\n\nPHYSICAL EXAM:\nLUNGS: Clear.\n\nPLAN:\nRest.\n")
FRAGMENTS = st.lists(
    st.sampled_from(["PLAN:", "ALLERGIES: none", "\n", "\n\n", "He is well. ", "LUNGS:\n", " "]), max_size=30
)


@given(FRAGMENTS.map("".join), st.sampled_from(CUTS), st.integers(1, 50))
def test_paragraphs_together_are_the_text(text, cut, length):
    document = Document("1", text)
    spans = Paragraphs(cut, length)(document)
    assert "".join(document[span] for span in spans) == (text if text.strip() else "")
    assert all(span.begin < span.end for span in spans)
    assert Paragraphs(cut, length)(document) == spans


@given(FRAGMENTS.map("".join), st.integers(1, 3))
def test_paragraphs_by_counts_together_are_the_text(text, threshold):
    document = Document("1", text)
    spans = Paragraphs("heading", counts=count_headings([document]), threshold=threshold)(document)
    assert "".join(document[span] for span in spans) == (text if text.strip() else "")


def test_a_heading_without_a_body_joins_the_next_paragraph():
    assert [NOTE[span] for span in Paragraphs()(NOTE)] == [
        "Seen today.\n\n",
        "ALLERGIES:\nNone.\n\n",
        "PHYSICAL EXAM:\nLUNGS: Clear.\n\n",
        "PLAN:\nRest.\n",
    ]


def test_only_frequent_headings_open_a_paragraph():
    notes = [NOTE, Document("2", "PLAN: fluids\n"), Document("3", "PLAN: rest\nALLERGIES: none\n")]
    counts = count_headings(notes)
    assert (counts["plan"], counts["allergies"]) == (3, 2)
    for threshold, count in ((1, 5), (2, 3), (3, 2), (4, 1)):
        assert len(Paragraphs("heading", counts=counts, threshold=threshold)(NOTE)) == count


def test_the_threshold_comes_closest_to_the_length():
    notes = [NOTE, Document("2", "PLAN: fluids\n"), Document("3", "PLAN: rest\nALLERGIES: none\n")]
    short, long = (Paragraphs.of_length("heading", length, notes) for length in (1, 1000))
    assert short.threshold == 1
    assert long.threshold == 4
    assert [len(long(note)) for note in notes] == [1, 1, 1]
    assert Paragraphs.of_length("uniform", 10, notes) == Paragraphs("uniform", 10)
    assert Paragraphs.of_length("heading", 10, [])(NOTE) == [Span(0, len(NOTE.text))]


def test_neighbouring_passages_are_grouped_up_to_a_length():
    spans = [passage.span for passage in passages(NOTE)]
    assert len(spans) > 2
    assert [span.begin for span in Paragraphs("passage", 1)(NOTE)] == [span.begin for span in spans]
    assert Paragraphs("passage")(NOTE) == [Span(0, len(NOTE.text))]
    pair = Paragraphs("passage", spans[1].end - spans[0].begin)(NOTE)[0]
    assert spans[1].end <= pair.end <= spans[2].begin


def test_answers_are_not_cut():
    answer = Span(NOTE.text.index("ALLERGIES") - 5, NOTE.text.index("None"))
    for method in (
        Paragraphs(),
        Paragraphs("passage", 8),
        Paragraphs("uniform", 8),
        Paragraphs(counts=count_headings([NOTE])),
    ):
        assert any(span.covers(answer) for span in method(NOTE, [answer]))
    assert not any(span.covers(answer) for span in Paragraphs()(NOTE))


def test_annotated_sections_are_paragraphs():
    text = "One line only with no breaks at all"
    annotations = tuple(
        Annotation("section", Span(b, e), {"heading": h}) for b, e, h in ((0, 9, "One"), (9, 35, "Only"))
    )
    document = Document("1", text, annotations=annotations)
    for method in (Paragraphs(), Paragraphs(counts=count_headings([document]))):
        assert [document[span] for span in method(document)] == ["One line ", "only with no breaks at all"]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_text_without_words_has_no_paragraphs(text):
    assert all(Paragraphs(cut)(Document("1", text)) == [] for cut in CUTS)


def test_the_paragraph_of_a_span_is_found():
    paragraphs = Paragraphs("uniform", 10)(NOTE)
    for position in range(len(NOTE.text)):
        paragraph = paragraphs[paragraph_index(paragraphs, Span(position, position + 1))]
        assert paragraph.begin <= position < paragraph.end


def test_an_unknown_method_and_a_length_below_one_are_errors():
    with pytest.raises(CaprError, match="Fix: use one of passage, heading, uniform, whole"):
        Paragraphs("page")
    with pytest.raises(CaprError, match="Fix: give it at least 1"):
        Paragraphs("uniform", 0)
