"""CDV: reads a document sentence by sentence, and gives each sentence a vector of its entity and one of its aspect.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020:

    h_t = LSTM(s_1 ... s_t) + LSTM(s_T ... s_t)     (+ joins),    delta_t = tanh(W h_t + b)          (11)
    eps_t = tanh(W_e delta_t + b_e),                              alpha_t = tanh(W_a delta_t + b_a)  (12)

with 512 states per direction, 256 for delta and 128 for each output (`PAPER`). The released code has 1,024 and 512, and
a normalised tanh layer of 128 between delta and each output (`CODE`). `OURS` has half of the paper's states and no tanh
at the end. It adds linear paths to the outputs from the sentence itself, from the first sentence of the document, which
mostly names its subject, and from the mean of all sentences. Through these paths, words reach the outputs without
passing through the LSTM. A small transformer can replace the LSTM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

NETWORKS = ("blstm", "transformer")
HEADS, LAYERS = 4, 2  # attention heads and layers of the transformer
BEGIN = 8.0  # norm of the initial weights of a linear path


@dataclass(frozen=True)
class Sizes:
    """The architecture and sizes of a network.

    Attributes:
        hidden: states of the LSTM per direction. The transformer has twice as many.
        delta: size of the discourse vector.
        branch: size of a normalised layer between delta and each output; 0 for none.
        bounded: whether outputs pass through tanh.
        direct: whether there are linear paths to the outputs from the sentence, from the first sentence of its
            document and from the mean of all sentences.
        normalised: whether the discourse vector is normalised over the batch ("L2 batch normalization" of the paper).
        over: the network that reads the sentences: `blstm` or `transformer`.
    """

    hidden: int = 256
    delta: int = 256
    branch: int = 0
    bounded: bool = False
    direct: bool = True
    normalised: bool = False
    over: str = "blstm"


OURS = Sizes()
PAPER = Sizes(512, 256, bounded=True, direct=False, normalised=True)
CODE = Sizes(1024, 512, branch=128, bounded=True, direct=False)


class Cdv(nn.Module):
    """Sentences of documents to vectors in the entity space and in the aspect space.

    Args:
        inputs: size of a sentence's vector, including structure flags.
        entity: dimensions of the entity space.
        aspect: dimensions of the aspect space.
        sizes: the architecture and sizes of the network.
        dropout: share of a sentence's input that training drops.
    """

    def __init__(self, inputs: int, entity: int, aspect: int, sizes: Sizes = OURS, dropout: float = 0.0) -> None:
        super().__init__()
        self.sizes = sizes
        self.dropout = nn.Dropout(dropout)
        self.reader: nn.Module
        if sizes.over == "transformer":
            self.reader = Transformer(inputs, 2 * sizes.hidden)
        else:
            self.reader = Blstm(inputs, sizes.hidden)
        self.delta = nn.Linear(2 * sizes.hidden, sizes.delta)
        self.norm = nn.BatchNorm1d(sizes.delta) if sizes.normalised else None
        self.entity = _decoder(sizes, entity)
        self.aspect = _decoder(sizes, aspect)
        self.direct = nn.Linear(inputs, entity + aspect, bias=False) if sizes.direct else None
        self.opening = nn.Linear(inputs, entity + aspect, bias=False) if sizes.direct else None
        self.whole = nn.Linear(inputs, entity + aspect, bias=False) if sizes.direct else None
        self.halves = (entity, aspect)
        self.centre: Tensor
        self.spread: Tensor
        self.register_buffer("centre", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))

    def standardise(self, sentences: Tensor) -> None:
        """Set centre and spread so that all inputs have equal variance: word vectors vary little, flags much."""
        # sentences: (sentences, inputs)
        self.centre.copy_(sentences.mean(0))
        spread = sentences.std(0)
        self.spread.copy_(torch.where(spread > 1e-6, spread, torch.ones_like(spread)))

    def begin_with(self, entity: Tensor, aspect: Tensor) -> None:
        """Initialise the linear paths with the projections of names into the entity space and the aspect space.

        The paths from the first sentence and from the mean of all sentences get the entity projection only.
        """
        # entity, aspect: (inputs, dimensions of the space)
        assert self.direct is not None
        assert self.opening is not None
        assert self.whole is not None
        half = self.halves[0]
        with torch.no_grad():
            for path in (self.direct, self.opening, self.whole):
                path.weight.zero_()  # (entity + aspect, inputs)
                path.weight[:half] = self._scale(entity)
            self.direct.weight[half:] = self._scale(aspect)

    def _scale(self, projection: Tensor) -> Tensor:
        """Return the initial weights of a path for a projection: (dimensions, inputs)."""
        scaled = (projection * self.spread[:, None]).T
        return scaled * (BEGIN / torch.clamp(scaled.norm(), min=1e-6))

    def forward(self, sentences: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # sentences: (documents, sentences, inputs); lengths: (documents,), on the CPU; None if all lengths are equal
        sentences = self.dropout((sentences - self.centre) / self.spread)
        states = self.reader(sentences, lengths)  # (documents, sentences, 2 hidden)
        delta = self.delta(states)  # (documents, sentences, delta)
        if self.norm is not None:
            delta = self._normalise(delta, lengths)
        delta = torch.tanh(delta)
        entity, aspect = self.entity(delta), self.aspect(delta)  # (documents, sentences, entity), (..., aspect)
        if self.direct is not None:
            assert self.opening is not None
            assert self.whole is not None
            linear = self.direct(sentences) + self.opening(sentences[:, :1])  # (documents, sentences, entity + aspect)
            linear = linear + self.whole(_mean(sentences, lengths))
            linear_entity, linear_aspect = linear.split(self.halves, dim=-1)
            entity, aspect = entity + linear_entity, aspect + linear_aspect
        return (torch.tanh(entity), torch.tanh(aspect)) if self.sizes.bounded else (entity, aspect)

    def _normalise(self, delta: Tensor, lengths: Tensor | None) -> Tensor:
        """Normalise over the sentences of the batch, without padding; a single sentence by the running statistics."""
        if lengths is None:
            return self._normalise_rows(delta.flatten(0, 1)).view_as(delta)
        mask = present(lengths, delta.shape[1]).to(delta.device)  # (documents, sentences)
        normalised = torch.zeros_like(delta)
        normalised[mask] = self._normalise_rows(delta[mask]).to(normalised.dtype)
        return normalised

    def _normalise_rows(self, rows: Tensor) -> Tensor:
        # rows: (sentences, delta)
        norm = self.norm
        assert norm is not None
        if self.training and len(rows) == 1:  # one row has no variance
            return nn.functional.batch_norm(
                rows, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
            )
        return norm(rows)


def _mean(sentences: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the mean of the sentences of each document, without padding: (documents, 1, inputs)."""
    if lengths is None:
        return sentences.mean(1, keepdim=True)
    mask = present(lengths, sentences.shape[1]).to(sentences)  # (documents, sentences)
    return (mask[:, None] @ sentences) / mask.sum(1)[:, None, None]


def _decoder(sizes: Sizes, outputs: int) -> nn.Module:
    if not sizes.branch:
        return nn.Linear(sizes.delta, outputs)
    return nn.Sequential(nn.Linear(sizes.delta, sizes.branch), nn.Tanh(), Unit(), nn.Linear(sizes.branch, outputs))


class Unit(nn.Module):
    """Normalises vectors to length 1."""

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors / (torch.linalg.vector_norm(vectors, dim=-1, keepdim=True) + 1e-8)


class Blstm(nn.Module):
    """An LSTM in each direction."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, sentences: Tensor, lengths: Tensor | None) -> Tensor:
        # sentences: (documents, sentences, inputs)
        if lengths is None:
            return self.lstm(sentences)[0]  # (documents, sentences, 2 hidden)
        packed = pack_padded_sequence(sentences, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=sentences.shape[1])[0]


class Transformer(nn.Module):
    """Two layers of attention between sentences, with sinusoidal positions."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(inputs, size)
        self.layers = nn.ModuleList(Attention(size) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(size)
        self.size = size

    def forward(self, sentences: Tensor, lengths: Tensor | None) -> Tensor:
        # sentences: (documents, sentences, inputs)
        states = self.inputs(sentences)  # (documents, sentences, size)
        positions = torch.cumsum(torch.ones_like(states[0, :, :1]), 0) - 1  # (sentences, 1)
        steps = torch.arange(0, self.size, 2, device=states.device) * (-math.log(10_000) / self.size)
        angles = positions * torch.exp(steps)  # (sentences, size / 2)
        states = states + torch.cat([torch.sin(angles), torch.cos(angles)], -1)
        mask = None if lengths is None else present(lengths, states.shape[1]).to(states.device)
        for layer in self.layers:
            states = layer(states, mask)
        return self.norm(states)  # (documents, sentences, size)


class Attention(nn.Module):
    """A transformer layer, normalised first. (torch cannot export its own layer for documents of any length.)"""

    def __init__(self, size: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.projections = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)
        self.dense = nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * size, size))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, present: Tensor | None) -> Tensor:
        # states: (documents, sentences, size); present: (documents, sentences), true where there is no padding
        parts = self.projections(self.norms[0](states)).chunk(3, dim=-1)  # queries, keys, values
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        # each: (documents, heads, sentences, size / heads)
        mask = None if present is None else present[:, None, None]  # (documents, 1, 1, sentences)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        states = states + self.dropout(self.output(attended.transpose(1, 2).flatten(-2)))
        return states + self.dropout(self.dense(self.norms[1](states)))  # (documents, sentences, size)


def present(lengths: Tensor, longest: int) -> Tensor:
    """Return a mask (documents, longest), true where there is no padding."""
    return torch.arange(longest)[None] < lengths[:, None]


class CdvForExport(nn.Module):
    """The network for export: one document to the vectors of its sentences, entity half and aspect half."""

    def __init__(self, model: Cdv) -> None:
        super().__init__()
        self.model = model

    def forward(self, sentences: Tensor) -> Tensor:
        # sentences: (sentences, inputs)
        entity, aspect = self.model(sentences[None])
        halves = [
            half / torch.clamp(torch.linalg.vector_norm(half, dim=-1, keepdim=True), min=1e-12)
            for half in (entity[0], aspect[0])
        ]
        return torch.cat(halves, -1) / math.sqrt(2)  # (sentences, entity + aspect)
