"""Segmentation: sentences, sections, passages, paragraphs and uniform segments, all as spans of the document's text."""

from capr.deprecation import renamed_attributes
from capr.segment.cutting import Cutting
from capr.segment.headings import HeadingCounts
from capr.segment.outline import Outline, outline
from capr.segment.paragraphs import Paragraphs
from capr.segment.passages import Passage, opening, passages, with_labels
from capr.segment.sections import Section, sections
from capr.segment.sentences import sentences
from capr.segment.structure import StructureFlags, structure
from capr.segment.uniform import uniform

__all__ = [
    "Cutting",
    "HeadingCounts",
    "Outline",
    "Paragraphs",
    "Passage",
    "Section",
    "StructureFlags",
    "opening",
    "outline",
    "passages",
    "sections",
    "sentences",
    "structure",
    "uniform",
    "with_labels",
]

__getattr__ = renamed_attributes(__name__, {"under": "with_labels"})
