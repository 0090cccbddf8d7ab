"""Adapts an encoder to a domain before it learns a task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from capr.models.family import Schedule
from capr.train.loop import Progress, TrainingTask, fit, shard
from capr.train.schedule import Rate, warm_up_then_decay

if TYPE_CHECKING:
    from tokenizers import Tokenizer

RATE = 3e-4
CHECKPOINTS = 10  # per run


def adapt(
    encoder: Any,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    steps: int,
    batch: int,
    seed: int,
    device: str,
    stage: str,
    folder: Path,
    progress: Progress,
) -> Any:
    """Continue the masked-language-model training of an encoder on texts of the domain."""
    schedule = Schedule(1, batch, RATE, patience=0, validations=CHECKPOINTS, seed=seed, device=device)
    fit(MaskedLanguageTask(encoder, tokenizer, texts, steps, schedule, stage), schedule, folder, True, progress)
    return encoder


class MaskedLanguageTask(TrainingTask):
    """Masked language modelling: the mask hides 15% of the pieces. The output matrix is the input embedding."""

    remedy = "train without --texts, or on others"

    def __init__(
        self, encoder: Any, tokenizer: Tokenizer, texts: Sequence[str], steps: int, schedule: Schedule, stage: str
    ) -> None:
        torch.manual_seed(schedule.seed)
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        self.ids = torch.from_numpy(np.concatenate([np.array(encoding.ids, np.int64) for encoding in encodings]))
        self.length = min(128, encoder.config.max_position_embeddings - 2, len(self.ids) - 1)
        hidden = encoder.config.hidden_size
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.model = nn.ModuleList([self.encoder, self.head])
        self.first, self.last, self.mask = (tokenizer.token_to_id(token) or 0 for token in ("[CLS]", "[SEP]", "[MASK]"))
        self.schedule, self.epoch_steps, self.stage = schedule, steps, stage

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(hash((self.schedule.seed, step)) % 2**31)
        starts = torch.randint(0, len(self.ids) - self.length, (self.schedule.batch,), generator=generator)
        pieces = self.ids[starts[:, None] + torch.arange(self.length)]  # (batch, length)
        hidden = torch.rand(pieces.shape, generator=generator) < 0.15
        return torch.stack(list(shard(list(pieces)))), torch.stack(list(shard(list(hidden))))

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        pieces, hidden = batch
        device, size = self.schedule.device, (len(pieces), 1)
        hidden_pieces = pieces.masked_fill(hidden, self.mask)
        inputs = torch.cat([torch.full(size, self.first), hidden_pieces, torch.full(size, self.last)], 1)
        states = self.encoder(input_ids=inputs.to(device)).last_hidden_state[:, 1:-1]
        embedding = self.encoder.get_input_embeddings().weight
        scores = self.head(states[hidden.to(device)]) @ embedding.T  # (hidden pieces, vocabulary)
        return nn.functional.cross_entropy(scores.float(), pieces[hidden].to(device))

    def settings(self) -> dict[str, Any]:
        return {"pieces": len(self.ids), "model": repr(self.model)}

    def optimizer(self, rate: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), rate, weight_decay=0.01)

    def rate(self, steps: int, warmup: float) -> Rate:
        return warm_up_then_decay(steps, 0.05)
