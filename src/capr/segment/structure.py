"""The structure flags that CDV's document encoder gets with each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capr.documents.document import Span
from capr.segment.sentences import LINE_ENDS


class StructureFlags(NamedTuple):
    """Seven values in CDV's order; begin and end of the sentence itself are always 0, as in its released code.

    Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval, 2020.
    """

    begin_of_document: int
    begin_of_paragraph: int
    list_item: int
    begin_of_sentence: int
    end_of_sentence: int
    end_of_paragraph: int
    end_of_document: int


def structure(text: str, sentences: Sequence[Span]) -> list[StructureFlags]:
    """The flags of each sentence of a document.

    A sentence ends a paragraph if a line break follows it (CDV: contains a newline token; there a line break always
    ends a sentence, so the two agree) or if it is the last one. A list item begins with "- ".

    Example:
        >>> text = "Take:\\n- aspirin\\n"
        >>> [tuple(flags) for flags in structure(text, [Span(0, 5), Span(6, 15)])]
        [(1, 1, 0, 0, 0, 1, 0), (0, 1, 1, 0, 0, 1, 1)]
    """
    found = []
    begins_paragraph = True
    for i, sentence in enumerate(sentences):
        last = i == len(sentences) - 1
        gap = text[sentence.end : len(text) if last else sentences[i + 1].begin]
        ends_paragraph = last or any(character in gap for character in LINE_ENDS)
        list_item = text.startswith("- ", sentence.begin)
        found.append(StructureFlags(i == 0, begins_paragraph, list_item, 0, 0, ends_paragraph, last))
        begins_paragraph = ends_paragraph
    return [StructureFlags(*map(int, flags)) for flags in found]
