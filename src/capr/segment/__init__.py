"""Passages out: sentences, sections by heading, uniform pieces and passages, all as ranges of the document's text."""

from capr.segment.headings import HeadingCounts
from capr.segment.paragraphs import Paragraphs
from capr.segment.passages import Passage, opening, passages, under
from capr.segment.sections import Section, sections
from capr.segment.sentences import sentences
from capr.segment.structure import StructureFlags, structure
from capr.segment.uniform import uniform

__all__ = [
    "HeadingCounts",
    "Paragraphs",
    "Passage",
    "Section",
    "StructureFlags",
    "opening",
    "passages",
    "sections",
    "sentences",
    "structure",
    "under",
    "uniform",
]
