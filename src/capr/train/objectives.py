"""What a bi-, poly- or cross-encoder is taught with a batch of draws, and how it ranks lists."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from capr.models.bi import BiEncoder
from capr.models.cross import CrossEncoder
from capr.models.poly import PolyEncoder
from capr.train.bases import Reader
from capr.train.losses import listwise, taught
from capr.train.pairs import Draw, Pairs

SHORT = (12, 25, 50)  # words
KEPT = 4096  # passages, of which a poly-encoder keeps the vectors
List = tuple[str, Sequence[int], set[int]]  # a query, candidates, those that answer


@dataclass(frozen=True)
class Reading:
    """How texts are read, and what a batch holds.

    Attributes:
        negatives: hard negatives for each query.
        pieces: of a passage; of query and passage together for a cross-encoder.
        query_pieces: of a query.
        views: how often passages are read bare, and under what (`capr.train.pairs.VIEWS`).
        short: share of the batches in which passages are cut to their first words, as some sources have short ones.
        false_negatives: whether passages that may answer are left out of the loss.
        query, passage: markers before each.
        context: whether a passage is read with what stands around it.
    """

    negatives: int = 3
    pieces: int = 256
    query_pieces: int = 64
    views: tuple[tuple[str, float], ...] = (("text", 1.0),)
    short: float = 0.0
    false_negatives: bool = True
    query: str = ""
    passage: str = ""
    context: bool = False

    def view(self, draw: random.Random) -> str:
        """One for a whole batch, so that it does not give the answer away; perhaps with a number of words."""
        names, weights = zip(*self.views, strict=True)
        name: str = draw.choices(names, weights)[0]
        return f"{name} {draw.choice(SHORT)}" if self.short and draw.random() < self.short else name


@dataclass
class Batch:
    """What one step sees: tensors, ready for the device.

    Attributes:
        queries: as the model takes them; none for a cross-encoder.
        passages: in parts of like length; for a cross-encoder, pairs of query and passage.
        back: the places that bring the passages back into their order.
        answers: (queries,), the place of the passage that answers.
        left_out: (queries, passages).
        teacher: what the teacher takes, in the same order.
    """

    queries: dict[str, Tensor]
    passages: list[dict[str, Tensor]]
    back: Tensor
    answers: Tensor
    left_out: Tensor
    teacher: dict[str, Tensor] = field(default_factory=dict)
    taught: Tensor | None = None  # (queries, list), places of the passages that the teacher judges
    judged: Sequence[tuple[Any, list[dict[str, Tensor]], Tensor]] = ()  # each teacher of a cross-encoder and its pairs


class Objective(ABC):
    """A model with its reader."""

    model: nn.Module

    def __init__(self, pairs: Pairs, reader: Reader, reading: Reading) -> None:
        self.pairs, self.reader, self.reading = pairs, reader, reading

    @abstractmethod
    def batch(self, chosen: Sequence[Draw], draw: random.Random) -> Batch: ...

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor: ...

    @abstractmethod
    def ranked(self, pairs: Pairs, lists: Sequence[List], view: str, size: int = 256) -> list[list[float]]:
        """The scores of each list's candidates."""

    def _flat(self, chosen: Sequence[Draw], draw: random.Random) -> tuple[list[str], list[int], Tensor, Tensor]:
        """Queries, passages of the whole batch, places of the answers, and what does not count."""
        queries = [one.worded(draw) for one in chosen]
        places: dict[int, int] = {}
        for one in chosen:
            places.setdefault(one.passage, len(places))
        for one in chosen:
            for number in draw.sample(one.negatives, min(self.reading.negatives, len(one.negatives))):
                places.setdefault(number, len(places))
        answers = torch.tensor([places[one.passage] for one in chosen])
        left_out = torch.zeros(len(chosen), len(places), dtype=torch.bool)
        if self.reading.false_negatives:
            for row, one in enumerate(chosen):
                left_out[row, [places[number] for number in self.pairs.answering(one) if number in places]] = True
            left_out[torch.arange(len(chosen)), answers] = False
        return queries, list(places), answers, left_out

    def _texts(self, numbers: Sequence[int], view: str, pairs: Pairs | None = None) -> list[str]:
        passages = (pairs or self.pairs).passages
        return [self.reading.passage + passages[number].view(view) for number in numbers]

    def _read(self, numbers: Sequence[int], view: str, pairs: Pairs | None = None) -> dict[str, Tensor]:
        """Passages as the model takes them."""
        texts = self._texts(numbers, view, pairs)
        if not self.reading.context:
            return self.reader.read(texts, self.reading.pieces)
        around = [(pairs or self.pairs).passages[number] for number in numbers]
        windows = [(one.before, text, one.after) for one, text in zip(around, texts, strict=True)]
        return self.reader.read_windows(windows, self.reading.pieces)

    def _parts(self, numbers: Sequence[int], view: str, whole: bool = False) -> tuple[list[dict[str, Tensor]], Tensor]:
        """The passages of a batch; as one part, where all have to be of one length."""
        if self.reading.context or whole:
            return [self._read(numbers, view)], torch.arange(len(numbers), device=self.reader.device)
        return self.reader.read_parts(self._texts(numbers, view), self.reading.pieces)


class BiObjective(Objective):
    """In-batch softmax: each query against the passages of all, and hard negatives.

    Args:
        model: to teach.
        pairs: to teach with.
        reader: its tokenizer.
        reading: how.
        dimensions: nested (matryoshka) sizes of vectors that are taught together; empty for all dimensions only.
        teacher: a cross-encoder with its reader, whose ranking of each query's own list is taught as well.
    """

    def __init__(
        self, model: BiEncoder, pairs: Pairs, reader: Reader, reading: Reading, dimensions: Sequence[int] = (),
        teacher: CrossObjective | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pairs, reader, reading)
        self.model: BiEncoder = model
        self.dimensions: Sequence[int | None] = list(dimensions) or [None]
        self.teacher = teacher

    def batch(self, chosen: Sequence[Draw], draw: random.Random) -> Batch:
        queries, numbers, answers, left_out = self._flat(chosen, draw)
        view = self.reading.view(draw)
        batch = Batch(
            self.reader.read([self.reading.query + query for query in queries], self.reading.query_pieces),
            *self._parts(numbers, view),
            answers.to(self.reader.device),
            left_out.to(self.reader.device),
        )
        if self.teacher is not None:
            self._teach(batch, queries, chosen, numbers, view, draw)
        return batch

    def _teach(
        self, batch: Batch, queries: list[str], chosen: Sequence[Draw], numbers: list[int], view: str,
        draw: random.Random,
    ) -> None:  # fmt: skip
        """Each query's passage, its negatives, and some of the others' passages, for the teacher to judge."""
        assert self.teacher is not None
        places = {number: place for place, number in enumerate(numbers)}
        rows = []
        for one in chosen:
            own = [one.passage, *(number for number in one.negatives if number in places)][:8]
            others = draw.sample(numbers, min(12, len(numbers)))
            rows.append(list(dict.fromkeys(places[number] for number in (*own, *others)))[:8])
        width = min(len(row) for row in rows)
        taught = torch.tensor([row[:width] for row in rows])
        texts = [
            (queries[row], self.pairs.passages[numbers[place]].view(view))
            for row, places_ in enumerate(taught.tolist())
            for place in places_
        ]
        batch.taught = taught.to(self.reader.device)
        batch.teacher = self.teacher.reader.read(texts, self.teacher.reading.pieces)

    def loss(self, batch: Batch) -> Tensor:
        queries = self.model.query(**batch.queries)
        passages = torch.cat([self.model.passage(**part) for part in batch.passages])[batch.back]
        total = torch.zeros((), device=queries.device)
        for dimensions in self.dimensions:
            scores = self.model.scores(queries, passages, dimensions)
            total = total + listwise(scores, batch.answers, batch.left_out)
            if self.teacher is not None and batch.taught is not None:
                with torch.no_grad():
                    judged = self.teacher.model(**batch.teacher).reshape(batch.taught.shape)
                total = total + taught(scores.gather(1, batch.taught), judged)
        return total / len(self.dimensions)

    @torch.no_grad()
    def ranked(self, pairs: Pairs, lists: Sequence[List], view: str, size: int = 256) -> list[list[float]]:
        numbers = sorted({number for _, candidates, _ in lists for number in candidates})
        reading = self.reading
        passages = [
            self.model.passage(**self._read(numbers[i : i + size], view, pairs)).float()
            for i in range(0, len(numbers), size)
        ]
        asked = [reading.query + query for query, _, _ in lists]
        queries = [
            self.model.query(**self.reader.read(asked[i : i + size], reading.query_pieces)).float()
            for i in range(0, len(asked), size)
        ]
        scores = self.model.scores(torch.cat(queries), torch.cat(passages)).cpu()
        places = {number: place for place, number in enumerate(numbers)}
        return [
            scores[row, [places[number] for number in candidates]].tolist()
            for row, (_, candidates, _) in enumerate(lists)
        ]


class PolyObjective(Objective):
    """In-batch softmax over the attention of each query to the tokens of each passage."""

    def __init__(self, model: PolyEncoder, pairs: Pairs, reader: Reader, reading: Reading) -> None:
        super().__init__(pairs, reader, reading)
        self.model: PolyEncoder = model

    def batch(self, chosen: Sequence[Draw], draw: random.Random) -> Batch:
        queries, numbers, answers, left_out = self._flat(chosen, draw)
        return Batch(
            self.reader.read([self.reading.query + query for query in queries], self.reading.query_pieces),
            *self._parts(numbers, self.reading.view(draw), whole=True),
            answers.to(self.reader.device),
            left_out.to(self.reader.device),
        )

    def loss(self, batch: Batch) -> Tensor:
        queries, passages = self.model.query(**batch.queries), self.model.passage(**batch.passages[0])
        return listwise(self.model.scores(queries, passages), batch.answers, batch.left_out)

    @torch.no_grad()
    def ranked(self, pairs: Pairs, lists: Sequence[List], view: str, size: int = 64) -> list[list[float]]:
        reading, found = self.reading, []
        kept: dict[int, Tensor] = {}  # the vectors that count of passages that were read, as lists share many
        for query, candidates, _ in lists:
            if len(kept) > KEPT:
                kept.clear()
            new = [number for number in dict.fromkeys(candidates) if number not in kept]
            for begin in range(0, len(new), size):
                part = new[begin : begin + size]
                tokens, counts = self.model.passage(**self._read(part, view, pairs))
                kept |= {number: tokens[row][counts[row]] for row, number in enumerate(part)}
            rows = [kept[number] for number in candidates]
            lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
            tokens = pad_sequence(rows, batch_first=True)  # (candidates, pieces, size)
            counts = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
            asked = self.model.query(**self.reader.read([reading.query + query], reading.query_pieces))
            found.append(self.model.scores(asked, (tokens, counts))[0].tolist())
        return found


class CrossObjective(Objective):
    """Listwise: each query with its passage and n that do not answer; of a teacher, the ranking of the same list."""

    def __init__(
        self, model: CrossEncoder, pairs: Pairs, reader: Reader, reading: Reading,
        teachers: Sequence[CrossObjective] = (), hard: float = 0.3,
    ) -> None:  # fmt: skip
        super().__init__(pairs, reader, reading)
        self.model: CrossEncoder = model
        self.teachers, self.hard = teachers, hard
        self._alike = [teacher.reader.reads_as(reader) for teacher in teachers]

    def batch(self, chosen: Sequence[Draw], draw: random.Random) -> Batch:
        view, wanted = self.reading.view(draw), self.reading.negatives
        texts: list[tuple[str, str]] = []
        for one in chosen:
            query = one.worded(draw)
            others = draw.sample(one.negatives, min(wanted, len(one.negatives)))
            others += self._any(wanted - len(others), self.pairs.answering(one), draw)
            texts += [(query, text) for text in self._texts([one.passage, *others], view)]
        answers = torch.zeros(len(chosen), dtype=torch.long, device=self.reader.device)
        parts = self.reader.read_parts(texts, self.reading.pieces)
        judged = [
            (teacher.model, *(parts if alike else teacher.reader.read_parts(texts, self.reading.pieces)))
            for teacher, alike in zip(self.teachers, self._alike, strict=True)
        ]
        return Batch({}, *parts, answers, torch.empty(0), judged=judged)

    def _any(self, count: int, answering: set[int], draw: random.Random) -> list[int]:
        """So many passages at random that do not answer; where there is none, any."""
        everything = range(len(self.pairs.passages))
        found: list[int] = []
        for _ in range(20 * count):
            if len(found) == count:
                break
            if (number := draw.choice(everything)) not in answering:
                found.append(number)
        return found + [draw.choice(everything) for _ in range(count - len(found))]

    def loss(self, batch: Batch) -> Tensor:
        lists = len(batch.answers)
        scores = _scored(self.model, batch.passages, batch.back, lists)  # (queries, 1 + negatives)
        value = listwise(scores, batch.answers)
        if batch.judged:
            with torch.no_grad():
                judged = [_scored(model, parts, back, lists) for model, parts, back in batch.judged]
            value = self.hard * value + taught(scores, torch.stack(judged).mean(0))
        return value

    @torch.no_grad()
    def ranked(self, pairs: Pairs, lists: Sequence[List], view: str, size: int = 512) -> list[list[float]]:
        texts = [(query, text) for query, candidates, _ in lists for text in self._texts(candidates, view, pairs)]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i][1]))  # of like length, so little padding
        scores = [0.0] * len(texts)
        for begin in range(0, len(order), size):
            part = order[begin : begin + size]
            found = self.model(**self.reader.read([texts[i] for i in part], self.reading.pieces))
            for i, score in zip(part, found.tolist(), strict=True):
                scores[i] = score
        cut = iter(scores)
        return [[next(cut) for _ in candidates] for _, candidates, _ in lists]


def _scored(model: nn.Module, parts: Sequence[dict[str, Tensor]], back: Tensor, lists: int) -> Tensor:
    """The scores of pairs that are in parts: (lists, pairs of each)."""
    return torch.cat([model(**part) for part in parts])[back].reshape(lists, -1)


def validated(objective: Objective, pairs: Pairs, lists: Sequence[List], view: str = "text") -> dict[str, float]:
    """The share of queries for which a passage that answers is the first, and among the first five."""
    trains = objective.model.training
    objective.model.eval()
    first = fifth = 0
    with autocast(objective.reader.device):
        ranked = objective.ranked(pairs, lists, view)
    for (_, candidates, answers), scores in zip(lists, ranked, strict=True):
        order = sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i]))
        first += candidates[order[0]] in answers
        fifth += any(candidates[i] in answers for i in order[:5])
    objective.model.train(trains)
    return {"R@1": first / max(1, len(lists)), "R@5": fifth / max(1, len(lists))}


def autocast(device: str) -> Any:
    """Mixed precision on a GPU: 16 bits of the kind that it has."""
    kind = torch.bfloat16 if device != "cuda" or torch.cuda.is_bf16_supported() else torch.float16
    return torch.autocast(device, kind, enabled=device == "cuda")
