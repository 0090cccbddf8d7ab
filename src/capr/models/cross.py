"""Cross-encoder: reads query and passage together and gives one score; the best, and the slowest.

Reference: Grundmann et al. (CAPR), section 3.3: `[CLS] query [SEP] passage [SEP]`, a linear layer on CLS. Trained
listwise, the passage that answers against n that do not.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class CrossEncoder(nn.Module):
    """A Hugging Face model for the classification of sequences, with one output."""

    def __init__(self, classifier: Any) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, **inputs: Tensor) -> Tensor:
        # each input: (pairs, pieces)
        scores: Tensor = self.classifier(**inputs).logits
        return scores[:, 0].float()  # (pairs,)


class Pair(nn.Module):
    """A cross-encoder as it is exported: inputs to scores."""

    def __init__(self, model: CrossEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)))[:, None]  # (pairs, 1)
