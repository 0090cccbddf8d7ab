"""How a discourse model learns: what its sentences should be about, the loop, and how well it does.

Reference: Arnold et al. (CDV), 2020, section 4.4, and its released code.
"""

from __future__ import annotations

import copy
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.index.onnx import Floats
from capr.index.spaces import Space
from capr.models.cdv import Cdv, Whole, present
from capr.search.runs import answer
from capr.train.cdv_recipe import Recipe
from capr.train.discourses import Discourses, Lesson, passages_of
from capr.train.loop import CHECKPOINT, Report, Schedule
from capr.train.losses import distances, element_wise, smoothed, softmax_over
from capr.train.objectives import autocast

FLAGS = 7
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))


class Targets:
    """What sentences can be about, as vectors of a space.

    Args:
        names: for each label its names, the usual one first.
        space: in which they lie.
    """

    def __init__(self, names: Sequence[Sequence[str]], space: Space, device: str) -> None:
        self._begins = np.cumsum([0, *(len(some) for some in names)])[:-1]
        self._counts = np.array([len(some) for some in names])
        self._vectors = torch.from_numpy(space.vectors([name for some in names for name in some])).to(device)

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def usual(self) -> Tensor:
        """(labels, dimensions), by their usual names."""
        return self._vectors[torch.from_numpy(self._begins).to(self._vectors.device)]

    def drawn(self, draw: np.random.Generator) -> Tensor:
        """(labels, dimensions), half of them by their usual names, the others by any."""
        any_of = self._begins + (draw.random(len(self)) * self._counts).astype(int)
        chosen = np.where(draw.random(len(self)) < 0.5, self._begins, any_of)
        return self._vectors[torch.from_numpy(chosen).to(self._vectors.device)]


class Wanted:
    """Which labels the sentences of a batch have, as (sentence, label, weight), each sentence with a weight of 1."""

    def __init__(self, labels: Sequence[Sequence[int]], device: str, balance: Sequence[float] | None = None) -> None:
        rows = [row for row, some in enumerate(labels) for _ in some]
        columns = [label for some in labels for label in some]
        shares = [1 / len(some) for some in labels for _ in some]
        self.rows = torch.tensor(rows, dtype=torch.long, device=device)
        self.columns = torch.tensor(columns, dtype=torch.long, device=device)
        self.shares = torch.tensor(shares, dtype=torch.float32, device=device)
        counted = [max((balance[label] for label in some), default=0.0) if balance else float(bool(some))
                   for some in labels]  # fmt: skip
        self.counted = torch.tensor(counted, device=device)  # (sentences,): how much each counts; 0 without labels

    def vectors(self, labels: Tensor) -> Tensor:
        """(sentences, dimensions): the mean of the labels' vectors, of length 1 (equation 16, as in the code)."""
        total = torch.zeros(len(self.counted), labels.shape[1], device=labels.device)
        total.index_add_(0, self.rows, labels[self.columns] * self.shares[:, None])
        return nn.functional.normalize(total, dim=-1)

    def cross_entropy(self, vectors: Tensor, labels: Tensor, temperature: float) -> Tensor:
        """Of the sentences' labels against all labels."""
        shares = self.shares * self.counted[self.rows]
        return softmax_over(vectors, labels, self.rows, self.columns, shares, temperature)


@dataclass
class Learned:
    """What a run works with: the network, the documents as it reads them, and the labels.

    `balance` has how much each entity and each aspect counts; all the same if None.
    """

    model: Cdv
    recipe: Recipe
    features: list[Tensor]  # of each document (sentences, inputs)
    lessons: list[Lesson]
    entities: Targets
    aspects: Targets
    balance: tuple[Sequence[float] | None, Sequence[float] | None] = (None, None)

    @property
    def module(self) -> nn.Module:
        """All that learns."""
        return self.model

    def refresh(self) -> None:
        """Reads the documents again, if what reads them has learned."""

    def parts(self, chosen: Sequence[int], draw: np.random.Generator) -> list[list[int]]:
        """The sentences of each document that are read."""
        return [list(range(min(len(self.lessons[i].sentences), self.recipe.sentences))) for i in chosen]

    def read(self, chosen: Sequence[int], parts: Sequence[list[int]]) -> list[Tensor]:
        """Of each document (sentences, inputs)."""
        return [self.features[i][part] for i, part in zip(chosen, parts, strict=True)]

    def loss(self, chosen: Sequence[int], draw: np.random.Generator, device: str) -> Tensor:
        """Of some documents."""
        parts = self.parts(chosen, draw)
        read = self.read(chosen, parts)
        lengths = torch.tensor([len(document) for document in read])
        padded = nn.utils.rnn.pad_sequence(read, batch_first=True).to(device).float()
        halves = self.model(padded, lengths)  # (documents, sentences, dimensions) each
        real = present(lengths, padded.shape[1]).to(device)
        entity, aspect = (half[real].float() for half in halves)  # (sentences of all, dimensions)
        cut = list(zip(chosen, parts, strict=True))
        entities = Wanted([self.lessons[i].entities[k] for i, part in cut for k in part], device, self.balance[0])
        aspects = Wanted([self.lessons[i].aspects[k] for i, part in cut for k in part], device, self.balance[1])
        if self.recipe.loss == "softmax":
            heat = self.recipe.temperature
            of_entity = entities.cross_entropy(entity, self.entities.drawn(draw), heat)
            return of_entity + aspects.cross_entropy(aspect, self.aspects.drawn(draw), heat)
        wanted = entities.vectors(self.entities.usual), aspects.vectors(self.aspects.usual)
        counted = entities.counted, aspects.counted
        if self.recipe.loss == "element":
            return element_wise((entity, aspect), wanted, counted) / len(chosen)
        return (smoothed if self.recipe.loss == "smoothed" else distances)((entity, aspect), wanted, counted)


def features(
    lessons: Sequence[Lesson],
    vectors: Callable[[Sequence[str]], Floats],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Tensor]:
    """Of each document (sentences, inputs): the vectors of its sentences, and their flags; in 16 bits."""
    found = []
    for number, lesson in enumerate(lessons, 1):
        flags = np.array(lesson.flags, np.float32).reshape(-1, FLAGS)
        joined = np.concatenate([vectors(lesson.sentences), flags], 1)
        found.append(torch.from_numpy(joined.astype(np.float16)))
        progress(number, len(lessons))
    return found


def balances(discourses: Discourses) -> tuple[list[float], list[float]]:
    """How much each label counts: entities that no document is about a tenth, aspects min(1, 0.03 / sqrt(share)).

    A document is about the first entity of its first sentence that has any; a title line may have none.
    """
    subjects = {next((some[0] for some in lesson.entities if some), None) for lesson in discourses.lessons}
    counts = np.zeros(len(discourses.aspects))
    for lesson in discourses.lessons:
        for some in lesson.aspects:
            counts[some] += 1
    shares = np.maximum(counts, 1) / max(1.0, counts.sum())
    entities = [1.0 if number in subjects else 0.1 for number in range(len(discourses.entities))]
    return entities, [float(weight) for weight in np.minimum(1, 0.03 / np.sqrt(shares))]


def fit(
    learned: Learned, held: Learned, schedule: Schedule, folder: Path | None = None, resume: bool = False,
    progress: Callable[[Report], None] = lambda report: None,
) -> dict[str, float]:  # fmt: skip
    """Teaches the network, which afterwards has the weights of the best validation, and gives its scores.

    Raises:
        CaprError: the loss is not a number any more, or the checkpoint is of another run.
    """
    model, recipe, device = learned.module.to(schedule.device), learned.recipe, schedule.device
    size = max(1, min(schedule.batch, len(learned.features)))
    each = -(-len(learned.features) // size)
    steps = schedule.epochs * each
    optimizer = torch.optim.AdamW(model.parameters(), schedule.learning_rate, weight_decay=recipe.decay)
    best: dict[str, Any] = {"scores": {}, "weights": None, "worse": 0}
    begin = _resumed(folder, model, optimizer, best, settings_of(learned, schedule)) if resume and folder else 0
    for epoch in range(begin, schedule.epochs):
        if schedule.patience and best["worse"] >= schedule.patience:
            break
        order = list(range(len(learned.features)))
        random.Random(f"{schedule.seed} epoch {epoch}").shuffle(order)
        draw = np.random.default_rng([schedule.seed, epoch])
        torch.manual_seed(schedule.seed * 1000 + epoch)
        model.train()
        value = math.nan
        for place in range(each):
            step = epoch * each + place
            share = recipe.falling**epoch if recipe.falling else max(0.02, 1 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = schedule.learning_rate * share
            with autocast(device):
                loss = learned.loss(order[place * size : (place + 1) * size], draw, device)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            value = loss.item()
            if not math.isfinite(value):
                fix = "go on with --resume and a lower --learning-rate"
                raise CaprError(f"the loss became {value} in step {step + 1:,}. Fix: {fix}.")
            if (step + 1) % 10 == 0:
                progress(Report(step + 1, steps, value))
        scores = validated(held, schedule)
        if scores.get("MAP", 0) > best["scores"].get("MAP", -1):
            best |= {"scores": scores, "weights": copy.deepcopy(model.state_dict()), "worse": 0}
        else:
            best["worse"] += 1
        progress(Report((epoch + 1) * each, steps, value, scores))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            kept = {"settings": settings_of(learned, schedule), "epoch": epoch + 1, "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(), "best": best}  # fmt: skip
            torch.save(kept, folder / f"{CHECKPOINT}.part")
            (folder / f"{CHECKPOINT}.part").replace(folder / CHECKPOINT)
    if best["weights"] is not None:
        model.load_state_dict(best["weights"])
    model.eval()
    return dict(best["scores"])


def settings_of(learned: Learned, schedule: Schedule) -> dict[str, Any]:
    """What has to be the same to go on."""
    return {"seed": schedule.seed, "documents": len(learned.features), "model": repr(learned.module),
            "loss": learned.recipe.loss, "dense": learned.recipe.dense}  # fmt: skip


def _resumed(folder: Path, model: nn.Module, optimizer: Any, best: dict[str, Any], settings: dict[str, Any]) -> int:
    """Loads a checkpoint, if there is one, and gives the epoch to begin with."""
    path = folder / CHECKPOINT
    if not path.is_file():
        return 0
    try:
        kept = torch.load(path, map_location=next(model.parameters()).device, weights_only=True)
    except Exception as error:  # of a file that was cut off or changed
        raise CaprError(f"{path} is damaged ({type(error).__name__}). Fix: start anew without --resume.") from error
    if kept["settings"] != settings:
        fix = "use the same settings and documents, or start anew without --resume"
        raise CaprError(f"{path} is of a run with other settings. Fix: {fix}.")
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    best |= kept["best"]
    return int(kept["epoch"])


@torch.no_grad()
def encoded(model: Cdv, documents: Sequence[Tensor], device: str) -> Iterator[Tensor]:
    """Of each document (sentences, entity + aspect), as `capr.index.discourse` gives it."""
    model.eval()
    whole = Whole(model)
    for document in documents:
        yield whole(document.to(device).float()).float().cpu()


def validated(held: Learned, schedule: Schedule) -> dict[str, float]:
    """Every subject and aspect of the documents is asked for, over all of their passages: R@1, R@10 and MAP."""
    held.refresh()
    names, kinds = held.entities.usual.cpu(), held.aspects.usual.cpu()
    vectors: list[Tensor] = []
    asked: dict[tuple[int, int], set[int]] = {}
    for lesson, document in zip(held.lessons, encoded(held.model, held.features, schedule.device), strict=True):
        for places in passages_of(lesson).values():
            first = places[0]
            if lesson.entities[first]:
                for aspect in lesson.aspects[first]:
                    asked.setdefault((lesson.entities[first][0], aspect), set()).add(len(vectors))
            vectors.append(document[list(places)].mean(0))
    if not asked:
        return {}
    passages = torch.stack(vectors)  # (passages, entity + aspect)
    pairs = list(asked)
    weights = held.recipe.weights
    queries = torch.cat([names[[e for e, _ in pairs]] * weights[0], kinds[[a for _, a in pairs]] * weights[1]], -1)
    order = (queries @ passages.T).argsort(dim=1, descending=True).tolist()
    found = [[place in asked[pair] for place in row] for pair, row in zip(pairs, order, strict=True)]
    return {"R@1": _recall(found, 1), "R@10": _recall(found, 10), "MAP": float(np.mean([_precision(r) for r in found]))}


def threshold(held: Learned, schedule: Schedule) -> float:
    """Which share of `capr.search.runs.answer` gives the runs of sentences that come closest to passages.

    Every aspect of a document is asked for in that document, and the best run is compared with the sentences on it.
    """
    names, kinds, weights = held.entities.usual.cpu(), held.aspects.usual.cpu(), held.recipe.weights
    share = 2 / sum(weights) / math.sqrt(2)
    asked: list[tuple[list[float], set[int]]] = []
    for lesson, document in zip(held.lessons, encoded(held.model, held.features, schedule.device), strict=True):
        subjects = Counter(some[0] for some in lesson.entities if some)
        if not subjects:
            continue
        entity = names[subjects.most_common(1)[0][0]] * weights[0] * share
        for aspect in {some[0] for some in lesson.aspects if some}:
            query = torch.cat([entity, kinds[aspect] * weights[1] * share])
            gold = {place for place, some in enumerate(lesson.aspects) if some[:1] == [aspect]}
            asked.append(((document @ query).tolist(), gold))
    quality = {}
    for value in THRESHOLDS:
        found = []
        for scores, gold in asked:
            run = answer(scores, value)
            common = len(gold & set(range(run.first, run.last)))
            found.append(2 * common / (len(gold) + run.last - run.first))
        quality[value] = float(np.mean(found)) if found else 0.0
    return max(quality, key=quality.__getitem__)


def _recall(found: Sequence[Sequence[bool]], k: int) -> float:
    return float(np.mean([sum(row[:k]) / sum(row) for row in found]))


def _precision(row: Sequence[bool]) -> float:
    """Average precision."""
    places = [place for place, hit in enumerate(row, 1) if hit]
    return sum(number / place for number, place in enumerate(places, 1)) / len(places)
