"""Reader: where in a paragraph the answer to a question begins and where it ends, or that it has none.

`[CLS] question [SEP] paragraph [SEP]` goes through any encoder of Hugging Face, and a linear layer gives each word
piece two scores: that the answer begins there, and that it ends there. An answer at [CLS] means that there is none.

References: Devlin et al., BERT, 2019, section 4.3 (SQuAD v2); Lanz and Pecina, Paragraph Retrieval for Enhanced
Question Answering in Clinical Documents, 2024, section 3.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class SpanReader(nn.Module):
    """A Hugging Face model for question answering: an encoder, and a linear layer with two outputs."""

    def __init__(self, answerer: Any) -> None:
        super().__init__()
        self.answerer = answerer

    def forward(self, **inputs: Tensor) -> Tensor:
        # each input: (windows, pieces)
        found = self.answerer(**inputs)
        return torch.stack((found.start_logits, found.end_logits), -1).float()  # (windows, pieces, 2)


class Spans(nn.Module):
    """A reader as it is exported: inputs to scores."""

    def __init__(self, model: SpanReader, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)))  # (windows, pieces, 2)
