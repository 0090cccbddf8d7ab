"""Long context: a Longformer reads a passage with the text around it, up to 4,096 word pieces.

Reference: Grundmann et al. (CAPR), section 3.4: the surrounding passages are part of the input. The window keeps the
whole passage, as near to the middle as the document allows. In the bi-encoder, the first piece attends globally. In the
poly-encoder, the text around the passage attends globally, and the attention of the query masks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PIECES = 4096


class ContextWindow(NamedTuple):
    """The word pieces of a passage and of the text around it; `inside` is true for the pieces of the passage."""

    ids: list[int]
    inside: list[bool]


def window(
    before: Sequence[int], passage: Sequence[int], after: Sequence[int], size: int, first: int, last: int
) -> ContextWindow:
    """Return a window with the passage, and with as much text before and after it as fits.

    Args:
        before: word pieces of the text before the passage.
        passage: word pieces of the passage.
        after: word pieces of the text after the passage.
        size: number of pieces in the window, including the first and the last.
        first: the piece that begins every input.
        last: the piece that ends every input.

    >>> window([1, 2, 3], [7, 8], [4, 5, 6], 8, 0, 9)
    ContextWindow(ids=[0, 2, 3, 7, 8, 4, 5, 9], inside=[False, False, False, True, True, False, False, False])
    """
    passage = list(passage)[: size - 2]
    room = size - 2 - len(passage)
    left = min(len(before), max(room // 2, room - len(after)))
    right = min(len(after), room - left)
    ids = [first, *(before[len(before) - left :] if left else ()), *passage, *after[:right], last]
    inside = [False] * (1 + left) + [True] * len(passage) + [False] * (right + 1)
    return ContextWindow(ids, inside)


class LongEncoder(nn.Module):
    """A Longformer with the interface of other encoders, which chooses the pieces that attend globally.

    Args:
        encoder: a Hugging Face Longformer.
        around: whether the text around the passage attends globally (poly-encoder). Otherwise only the first piece
            does (bi-encoder).
    """

    def __init__(self, encoder: Any, around: bool = False) -> None:
        super().__init__()
        self.encoder, self.around = encoder, around
        self.config = encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor, inside: Tensor | None = None) -> Any:
        # input_ids, attention_mask, inside: (texts, pieces)
        global_mask = torch.zeros_like(attention_mask)
        global_mask[:, 0] = 1
        if self.around and inside is not None:
            global_mask = torch.where(inside.bool(), global_mask, attention_mask)
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, global_attention_mask=global_mask)
