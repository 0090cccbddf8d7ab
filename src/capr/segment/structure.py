"""The structure flags of each sentence, an input of CDV's document encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capr.documents.document import Span
from capr.segment.sentences import LINE_ENDS


class StructureFlags(NamedTuple):
    """Seven flags in CDV's order. The start and end of the sentence itself are always 0, as in CDV's released code.

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
    """Return the flags of each sentence of a document.

    A sentence ends a paragraph if a line break follows it, or if it is the last sentence. In CDV, the sentence contains
    a newline token instead; both agree, because a line break always ends a sentence there. A list item begins with
    "- ".

    Args:
        text: the text of the document.
        sentences: the spans of its sentences.

    Example:
        >>> text = "Take:\\n- aspirin\\n"
        >>> [tuple(flags) for flags in structure(text, [Span(0, 5), Span(6, 15)])]
        [(1, 1, 0, 0, 0, 1, 0), (0, 1, 1, 0, 0, 1, 1)]
    """
    result = []
    begins_paragraph = True
    for i, sentence in enumerate(sentences):
        is_last = i == len(sentences) - 1
        gap = text[sentence.end : len(text) if is_last else sentences[i + 1].begin]
        ends_paragraph = is_last or any(character in gap for character in LINE_ENDS)
        is_list_item = text.startswith("- ", sentence.begin)
        result.append(StructureFlags(i == 0, begins_paragraph, is_list_item, 0, 0, ends_paragraph, is_last))
        begins_paragraph = ends_paragraph
    return [StructureFlags(*map(int, flags)) for flags in result]
