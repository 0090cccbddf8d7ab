"""Discourse vectors: every sentence of a document as a vector that knows the whole document, without torch.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020.
"""

from __future__ import annotations

from typing import Protocol

from capr.documents import Document, Span
from capr.index.onnx import Floats
from capr.index.protocol import EncoderIdentity, Vector


class Discourse(Protocol):
    """Documents to a vector for each sentence, queries to a vector; their dot product is the score.

    A vector has two halves, of the entity and of the aspect; `identity.dimensions` is the size of both together.
    """

    identity: EncoderIdentity

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        """The sentences of a document and (sentences, dimensions).

        Each half has length 1, and the whole is divided by sqrt(2).
        """

    def query(self, entity: str, aspect: str) -> Vector:
        """(dimensions,), the halves likewise; that of an empty entity or aspect is zero, and the other not rescaled."""
