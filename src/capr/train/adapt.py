"""Adapts an encoder to a domain, before it is taught a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from capr.train.schedule import warm_up_then_decay


def adapt(
    encoder: Any, tokenizer: Tokenizer, texts: Sequence[str], steps: int, batch: int, seed: int, device: str,
    progress: Callable[[int, float], None],
) -> Any:  # fmt: skip
    """Goes on with the encoder's masked-language-model training on texts of the domain.

    Fifteen per cent of the pieces are hidden, all by the mask; the output matrix is the input embedding.
    """
    torch.manual_seed(seed)
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    ids = torch.from_numpy(np.concatenate([np.array(encoding.ids, np.int64) for encoding in encodings]))
    length, size = min(128, encoder.config.max_position_embeddings - 2, len(ids) - 1), batch
    encoder = encoder.to(device).train()
    hidden = encoder.config.hidden_size
    head = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden)).to(device)
    embedding = encoder.get_input_embeddings().weight
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, 3e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_then_decay(steps, 0.05))
    first, last, mask = (tokenizer.token_to_id(token) or 0 for token in ("[CLS]", "[SEP]", "[MASK]"))
    for step in range(1, steps + 1):
        starts = torch.randint(0, len(ids) - length, (size,))
        pieces = ids[starts[:, None] + torch.arange(length)]  # (batch, length)
        chosen = torch.rand(pieces.shape) < 0.15
        hidden_pieces = pieces.masked_fill(chosen, mask)
        inputs = torch.cat([torch.full((size, 1), first), hidden_pieces, torch.full((size, 1), last)], 1)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            states = encoder(input_ids=inputs.to(device)).last_hidden_state[:, 1:-1]
            scores = head(states[chosen.to(device)]) @ embedding.T  # (chosen, vocabulary)
        value = nn.functional.cross_entropy(scores.float(), pieces[chosen].to(device))
        value.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 20 == 0 or step == steps:
            progress(step, value.item())
    return encoder
