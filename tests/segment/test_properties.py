"""Properties of every segmentation of any text."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Annotation, Document, Span
from capr.segment import HeadingCounts, passages, sections, sentences, structure, uniform

# Texts of the fragments that make clinical text hard to segment, mixed with arbitrary text.
FRAGMENTS = st.sampled_from(
    "PLAN: |Past Medical History|# Sepsis:|1. |2) |- |• |a. |Dr. |b.i.d. |q.6h. |vs. |3.5 mg|0.9%|No fever|He denies|the |"
    "patient |chest pain|. |.|!|? |: |; |, |\n|\n\n|\r\n|\r|\t|  |\u00a0|___|[**Known lastname**]|[**2151-7-16**]|\f|\u2028|"
    "\x0b|\x1c|\x85|🩺|é|( |) |**|====|----|HEENT: normal|vitamin D|E. coli|J. R. Smith|word".split("|")
)
TEXTS = st.one_of(
    st.lists(FRAGMENTS, max_size=60).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
)


def check(text: str, spans: list[Span]) -> None:
    """Check that spans are ordered, disjoint, not empty and inside the text, and leave out only white space."""
    position = 0
    for span in spans:
        assert position <= span.begin < span.end <= len(text)
        assert not text[position : span.begin].strip()
        assert span.of(text) == text[span.begin : span.end]
        position = span.end
    assert not text[position:].strip()


@given(TEXTS)
def test_sentences_cover_the_text(text):
    spans = sentences(text)
    check(text, spans)
    assert all(span == span.trimmed(text) for span in spans)


@given(TEXTS)
def test_sections_cover_the_text(text):
    document = Document("1", text)
    results = sections(document)
    check(text, [section.span for section in results])
    for section in results:
        if section.heading_span is not None:
            assert section.span.covers(section.heading_span)
            assert section.heading.split(" | ")[-1] in document[section.heading_span]
            assert section.span.covers(section.body)
            assert section.body.begin == section.heading_span.end


@given(TEXTS, st.integers(1, 5))
def test_sections_by_counts_cover_the_text(text, threshold):
    document = Document("1", text)
    counts = HeadingCounts.learn([document])
    check(text, [section.span for section in sections(document, counts, threshold)])


@given(TEXTS, st.data())
def test_annotated_sections_cover_the_text(text, data):
    borders = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    pairs = [Span(min(a, b), max(a, b)) for a, b in pairwise(borders)]
    annotations = tuple(Annotation("section", span, {"heading": f"S{i}"}) for i, span in enumerate(pairs))
    document = Document("1", text, annotations=annotations)
    check(text, [section.span for section in sections(document)])
    check(text, [passage.span for passage in passages(document, 10)])


@given(TEXTS, st.integers(1, 30))
def test_passages_cover_the_text_and_keep_the_limit(text, max_words):
    document = Document("1", text)
    results = passages(document, max_words)
    check(text, [passage.span for passage in results])
    check(text, [sentence for passage in results for sentence in passage.sentences])
    for i, passage in enumerate(results):
        assert passage.index == i
        assert len(document[passage.span].split()) <= max_words
        assert passage.previous == (results[i - 1].span if i else None)
        assert passage.next == (results[i + 1].span if i + 1 < len(results) else None)
        assert passage.span.covers(passage.body)
        assert passage.heading_span is None or passage.span.covers(passage.heading_span)


@given(TEXTS, st.integers(1, 50))
def test_uniform_segments_together_are_the_text(text, length):
    segments = uniform(text, length)
    assert "".join(segment.of(text) for segment in segments) == text
    assert all(segment.begin < segment.end for segment in segments)


@given(TEXTS)
def test_each_sentence_has_seven_flags(text):
    spans = sentences(text)
    flags = structure(text, spans)
    assert len(flags) == len(spans)
    assert all(len(flag) == 7 and set(flag) <= {0, 1} for flag in flags)
    if flags:
        assert flags[0].begin_of_document == flags[-1].end_of_document == 1
        assert sum(f.begin_of_paragraph for f in flags) == sum(f.end_of_paragraph for f in flags)
