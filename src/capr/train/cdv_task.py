"""The training task of discourse models: labels, loss and validation.

Reference: Arnold et al. (CDV), 2020, section 4.4, and its released code.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capr.models.cdv import Cdv, CdvForExport, present
from capr.models.cdv_family import Recipe
from capr.models.family import Schedule
from capr.models.losses import distances, element_wise, smoothed, softmax_over
from capr.runtime.onnx import Floats
from capr.runtime.query_spaces import QuerySpace
from capr.runtime.sentence_runs import answer
from capr.supervise.discourses import LabelledDocument, TrainingDiscourses, passages_of
from capr.text.digest import digest_records
from capr.train.loop import TrainingTask, shard
from capr.train.parallel import rank
from capr.train.schedule import Rate, decay_by_epoch, linear_decay

FLAGS = 7
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))


class LabelVectors:
    """The vectors of all labels: the entities or aspects that sentences can be about.

    Args:
        names: the names of each label, the usual one first.
        space: the space of the vectors.
        device: the device of the vectors.
    """

    def __init__(self, names: Sequence[Sequence[str]], space: QuerySpace, device: str) -> None:
        self._begins = np.cumsum([0, *(len(synonyms) for synonyms in names)])[:-1]
        self._counts = np.array([len(synonyms) for synonyms in names])
        self._vectors = torch.from_numpy(space.vectors([name for synonyms in names for name in synonyms])).to(device)

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def usual(self) -> Tensor:
        """The vectors of the usual names: (labels, dimensions)."""
        return self._vectors[torch.from_numpy(self._begins).to(self._vectors.device)]

    def draw(self, rng: np.random.Generator) -> Tensor:
        """Return a vector for each label (labels, dimensions): half of usual names, half of random names."""
        random_rows = self._begins + (rng.random(len(self)) * self._counts).astype(int)
        rows = np.where(rng.random(len(self)) < 0.5, self._begins, random_rows)
        return self._vectors[torch.from_numpy(rows).to(self._vectors.device)]


class SentenceLabels:
    """The labels of the sentences of a batch.

    Args:
        labels: the labels of each sentence.
        device: the device of the tensors.
        balance: the weight of each label. Default: 1.

    Attributes:
        rows: (pairs,), the index of a sentence.
        columns: (pairs,), a label of this sentence.
        shares: (pairs,), 1 divided by the number of labels of the sentence.
        weights: (sentences,), the weight of each sentence; 0 without labels.
    """

    def __init__(self, labels: Sequence[Sequence[int]], device: str, balance: Sequence[float] | None = None) -> None:
        rows = [row for row, row_labels in enumerate(labels) for _ in row_labels]
        columns = [label for row_labels in labels for label in row_labels]
        shares = [1 / len(row_labels) for row_labels in labels for _ in row_labels]
        self.rows = torch.tensor(rows, dtype=torch.long, device=device)
        self.columns = torch.tensor(columns, dtype=torch.long, device=device)
        self.shares = torch.tensor(shares, dtype=torch.float32, device=device)
        if balance:
            weights = [max((balance[label] for label in row_labels), default=0.0) for row_labels in labels]
        else:
            weights = [float(bool(row_labels)) for row_labels in labels]
        self.weights = torch.tensor(weights, device=device)

    def vectors(self, labels: Tensor) -> Tensor:
        """Return the normalised mean of the vectors of each sentence's labels (equation 16, as in the code).

        Args:
            labels: (labels, dimensions), the vectors of all labels.

        Returns:
            (sentences, dimensions).
        """
        total = torch.zeros(len(self.weights), labels.shape[1], device=labels.device)
        total.index_add_(0, self.rows, labels[self.columns] * self.shares[:, None])
        return nn.functional.normalize(total, dim=-1)

    def cross_entropy(self, vectors: Tensor, labels: Tensor, temperature: float) -> Tensor:
        """Return the cross-entropy of the labels of the sentences against all labels."""
        shares = self.shares * self.weights[self.rows]
        return softmax_over(vectors, labels, self.rows, self.columns, shares, temperature)


@dataclass
class CdvObjective:
    """The network with its documents and labels.

    Attributes:
        model: the network.
        recipe: the settings.
        features: the inputs of each document: (sentences, inputs).
        documents: the documents with their labels.
        entities: the vectors of all entities.
        aspects: the vectors of all aspects.
        balance: the weight of each entity and of each aspect. Default: 1.
    """

    model: Cdv
    recipe: Recipe
    features: list[Tensor]
    documents: list[LabelledDocument]
    entities: LabelVectors
    aspects: LabelVectors
    balance: tuple[Sequence[float] | None, Sequence[float] | None] = (None, None)

    @property
    def module(self) -> nn.Module:
        """The module with all trained weights."""
        return self.model

    def refresh(self) -> None:
        """Compute the features again, if the encoder of sentences was trained."""

    def parts(self, numbers: Sequence[int], rng: np.random.Generator) -> list[list[int]]:
        """Return the indices of the sentences of each document that the network reads."""
        return [list(range(min(len(self.documents[i].sentences), self.recipe.sentences))) for i in numbers]

    def read(self, numbers: Sequence[int], parts: Sequence[list[int]]) -> list[Tensor]:
        """Return the inputs of each document: (sentences, inputs)."""
        return [self.features[i][part] for i, part in zip(numbers, parts, strict=True)]

    def loss(self, numbers: Sequence[int], rng: np.random.Generator, device: str) -> Tensor:
        """Return the loss of the documents with these numbers, counted from 0."""
        parts = self.parts(numbers, rng)
        inputs = self.read(numbers, parts)
        lengths = torch.tensor([len(sentences) for sentences in inputs])
        padded = nn.utils.rnn.pad_sequence(inputs, batch_first=True).to(device).float()
        halves = self.model(padded, lengths)  # (documents, sentences, dimensions) each
        mask = present(lengths, padded.shape[1]).to(device)
        outputs = halves[0][mask].float(), halves[1][mask].float()  # (sentences of all documents, dimensions) each
        sentences = [(self.documents[i], k) for i, part in zip(numbers, parts, strict=True) for k in part]
        entities = SentenceLabels([document.entities[k] for document, k in sentences], device, self.balance[0])
        aspects = SentenceLabels([document.aspects[k] for document, k in sentences], device, self.balance[1])
        if self.recipe.loss == "softmax":
            temperature = self.recipe.temperature
            entity_loss = entities.cross_entropy(outputs[0], self.entities.draw(rng), temperature)
            return entity_loss + aspects.cross_entropy(outputs[1], self.aspects.draw(rng), temperature)
        targets = entities.vectors(self.entities.usual), aspects.vectors(self.aspects.usual)
        weights = entities.weights, aspects.weights
        if self.recipe.loss == "element":
            return element_wise(outputs, targets, weights) / len(numbers)
        return (smoothed if self.recipe.loss == "smoothed" else distances)(outputs, targets, weights)


def features(
    documents: Sequence[LabelledDocument],
    vectors: Callable[[Sequence[str]], Floats],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Tensor]:
    """Return the inputs of each document (sentences, inputs), in 16 bits: the vectors and flags of its sentences.

    Args:
        documents: the documents.
        vectors: a function from sentences to vectors.
        progress: a function that is called after each document, with the number of finished documents and of all.
    """
    inputs = []
    for number, document in enumerate(documents, 1):
        flags = np.array(document.flags, np.float32).reshape(-1, FLAGS)
        joined = np.concatenate([vectors(document.sentences), flags], 1)
        inputs.append(torch.from_numpy(joined.astype(np.float16)))
        progress(number, len(documents))
    return inputs


def balances(discourses: TrainingDiscourses) -> tuple[list[float], list[float]]:
    """Return the weight of each entity and of each aspect.

    An entity that is not the subject of a document has a weight of 0.1, an aspect min(1, 0.03 / sqrt(share)). The
    subject of a document is the first entity of its first sentence with an entity: a title line may have none.
    """
    subjects = {next((labels[0] for labels in document.entities if labels), None) for document in discourses.documents}
    counts = np.zeros(len(discourses.aspects))
    for document in discourses.documents:
        for labels in document.aspects:
            counts[labels] += 1
    shares = np.maximum(counts, 1) / max(1.0, counts.sum())
    entities = [1.0 if number in subjects else 0.1 for number in range(len(discourses.entities))]
    return entities, [float(weight) for weight in np.minimum(1, 0.03 / np.sqrt(shares))]


class CdvTask(TrainingTask):
    """The task of learning the entities and aspects of sentences. An epoch has all documents."""

    deciding = ("MAP",)

    def __init__(self, training: CdvObjective, validation: CdvObjective, schedule: Schedule, stage: str) -> None:
        self.training, self.validation, self.schedule, self.stage = training, validation, schedule, stage
        self.model = training.module
        self.size = max(1, min(schedule.batch, len(training.features)))
        self.epoch_steps = -(-len(training.features) // self.size)

    def batch(self, step: int) -> tuple[Sequence[int], np.random.Generator]:
        epoch, position = divmod(step, self.epoch_steps)
        order = list(range(len(self.training.features)))
        random.Random(f"{self.schedule.seed} epoch {epoch}").shuffle(order)
        documents = order[position * self.size : (position + 1) * self.size]
        return shard(documents) or documents[:1], np.random.default_rng([self.schedule.seed, step, rank()])

    def loss(self, batch: tuple[Sequence[int], np.random.Generator]) -> Tensor:
        return self.training.loss(*batch, self.schedule.device)

    def validate(self) -> dict[str, float]:
        return validation_scores(self.validation, self.schedule.device)

    def settings(self) -> dict[str, Any]:
        recipe = self.training.recipe
        return {
            "documents": len(self.training.features),
            "model": repr(self.model),
            "loss": recipe.loss,
            "dense": recipe.dense,
        }

    def data_digest(self) -> str:
        return digest_records(vars(document) for document in self.training.documents)

    def optimizer(self, rate: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), rate, weight_decay=self.training.recipe.decay)

    def rate(self, steps: int, warmup: float) -> Rate:
        falling = self.training.recipe.falling
        return decay_by_epoch(falling, self.epoch_steps) if falling else linear_decay(steps)


@torch.no_grad()
def encode(model: Cdv, documents: Sequence[Tensor], device: str) -> Iterator[Tensor]:
    """Yield the vectors of each document (sentences, entity + aspect), as `capr.runtime.discourse` does."""
    model.eval()
    network = CdvForExport(model)
    for document in documents:
        yield network(document.to(device).float()).float().cpu()


def validation_scores(validation: CdvObjective, device: str) -> dict[str, float]:
    """Search all passages for every pair of entity and aspect of the documents; return R@1, R@10 and MAP."""
    validation.refresh()
    entities, aspects = validation.entities.usual.cpu(), validation.aspects.usual.cpu()
    vectors: list[Tensor] = []
    qrels: dict[tuple[int, int], set[int]] = {}  # the answering passages of each pair
    for document, sentence_vectors in zip(
        validation.documents, encode(validation.model, validation.features, device), strict=True
    ):
        for sentences in passages_of(document).values():
            first = sentences[0]
            if document.entities[first]:
                for aspect in document.aspects[first]:
                    qrels.setdefault((document.entities[first][0], aspect), set()).add(len(vectors))
            vectors.append(sentence_vectors[list(sentences)].mean(0))
    if not qrels:
        return {}
    passages = torch.stack(vectors)  # (passages, entity + aspect)
    pairs = list(qrels)
    weights = validation.recipe.weights
    queries = torch.cat([entities[[e for e, _ in pairs]] * weights[0], aspects[[a for _, a in pairs]] * weights[1]], -1)
    run = (queries @ passages.T).argsort(dim=1, descending=True).tolist()
    hits = [[passage in qrels[pair] for passage in row] for pair, row in zip(pairs, run, strict=True)]
    average_precision = float(np.mean([_average_precision(row) for row in hits]))
    return {"R@1": _recall(hits, 1), "R@10": _recall(hits, 10), "MAP": average_precision}


def threshold(validation: CdvObjective, device: str) -> float:
    """Return the share for `capr.runtime.sentence_runs.answer` whose runs of sentences are closest to passages.

    The queries are the aspects of each document. The best run for an aspect is compared with the sentences about it.
    """
    entities, aspects, weights = (
        validation.entities.usual.cpu(),
        validation.aspects.usual.cpu(),
        validation.recipe.weights,
    )
    share = 2 / sum(weights) / math.sqrt(2)
    curves: list[tuple[list[float], set[int]]] = []  # scores of sentences, and the sentences about the aspect
    for document, sentence_vectors in zip(
        validation.documents, encode(validation.model, validation.features, device), strict=True
    ):
        subjects = Counter(labels[0] for labels in document.entities if labels)
        if not subjects:
            continue
        entity = entities[subjects.most_common(1)[0][0]] * weights[0] * share
        for aspect in {labels[0] for labels in document.aspects if labels}:
            query = torch.cat([entity, aspects[aspect] * weights[1] * share])
            gold = {sentence for sentence, labels in enumerate(document.aspects) if labels[:1] == [aspect]}
            curves.append(((sentence_vectors @ query).tolist(), gold))
    quality = {}
    for value in THRESHOLDS:
        overlaps = []
        for scores, gold in curves:
            run = answer(scores, value)
            common = len(gold & set(range(run.first, run.last)))
            overlaps.append(2 * common / (len(gold) + run.last - run.first))
        quality[value] = float(np.mean(overlaps)) if overlaps else 0.0
    return max(quality, key=quality.__getitem__)


def _recall(hits: Sequence[Sequence[bool]], k: int) -> float:
    return float(np.mean([sum(row[:k]) / sum(row) for row in hits]))


def _average_precision(hits: Sequence[bool]) -> float:
    positions = [position for position, hit in enumerate(hits, 1) if hit]
    return sum(number / position for number, position in enumerate(positions, 1)) / len(positions)
