"""Long context: a passage is read with what stands around it, up to 4,096 pieces, by a Longformer.

Reference: Grundmann et al. (CAPR), section 3.4: the surrounding passages are part of the input. The passage is kept
whole and as near to the middle as the document allows. For the bi-encoder the first piece attends globally; for the
poly-encoder the surroundings do, and pieces outside the passage are masked in the attention of the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PIECES = 4096


class Window(NamedTuple):
    """Pieces of a passage in its context; `inside` is true for those of the passage."""

    ids: list[int]
    inside: list[bool]


def window(
    before: Sequence[int], passage: Sequence[int], after: Sequence[int], size: int, first: int, last: int
) -> Window:
    """The passage between as much of its context as there is room for, as much on either side as is there.

    Args:
        before: word pieces.
        passage: word pieces.
        after: word pieces.
        size: of the window, with the pieces that begin and end it.
        first: the piece that begins a text.
        last: the piece that ends it.

    >>> window([1, 2, 3], [7, 8], [4, 5, 6], 8, 0, 9)
    Window(ids=[0, 2, 3, 7, 8, 4, 5, 9], inside=[False, False, False, True, True, False, False, False])
    """
    passage = list(passage)[: size - 2]
    room = size - 2 - len(passage)
    left = min(len(before), max(room // 2, room - len(after)))
    right = min(len(after), room - left)
    ids = [first, *(before[len(before) - left :] if left else ()), *passage, *after[:right], last]
    inside = [False] * (1 + left) + [True] * len(passage) + [False] * (right + 1)
    return Window(ids, inside)


class LongEncoder(nn.Module):
    """A Longformer that is told where to attend globally, with the interface of any other encoder.

    Args:
        encoder: a Hugging Face Longformer.
        around: whether the surroundings attend globally (poly-encoder), or the first piece alone (bi-encoder).
    """

    def __init__(self, encoder: Any, around: bool = False) -> None:
        super().__init__()
        self.encoder, self.around = encoder, around
        self.config = encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor, inside: Tensor | None = None) -> Any:
        # input_ids, attention_mask, inside: (texts, pieces)
        everywhere = torch.zeros_like(attention_mask)
        everywhere[:, 0] = 1
        if self.around and inside is not None:
            everywhere = torch.where(inside.bool(), everywhere, attention_mask)
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, global_attention_mask=everywhere)
