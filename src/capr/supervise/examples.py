"""Examples: a query, the passage that answers it, and passages that look as if they did but do not.

Reference: Grundmann et al. (CAPR). Each step draws passages that have labels of both kinds, and for each passage one
of its entities and one of its aspects. This pair is the query.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from capr.annotate.query import Query
from capr.segment.aspects import heading
from capr.supervise.pool import Pool, PoolPassage

KINDS = ("section", "bm25", "aspect")
CANDIDATES = 20  # candidates for each hard negative


@dataclass(frozen=True, slots=True)
class Negative:
    """A passage that does not answer, and the reason why it looks right: `section`, `bm25` or `aspect`."""

    kind: str
    passage: PoolPassage


@dataclass(frozen=True, slots=True)
class Example:
    """A query and its passage.

    Attributes:
        entity, aspect: their identities. Any passage that carries both may answer as well.
        query: the pair in the words of the passage's own mention and heading.
        passage: the passage that answers.
        negatives: passages that do not answer.
        false_negatives: numbers of other passages with the same labels, up to the number that the caller asked for.
    """

    entity: str
    aspect: str
    query: Query
    passage: PoolPassage
    negatives: tuple[Negative, ...] = ()
    false_negatives: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "entity": self.query.entity,
            "aspect": self.query.aspect,
            "entity_id": self.entity,
            "aspect_id": self.aspect,
            "query": self.query.wording,
            **_location(self.passage),
            "negatives": [{"kind": negative.kind, **_location(negative.passage)} for negative in self.negatives],
            "false_negatives": list(self.false_negatives),
        }


def _location(record: PoolPassage) -> dict[str, Any]:
    return {
        "passage": record.id,
        "document": record.document,
        "begin": record.begin,
        "end": record.end,
        "text": record.text,
    }


def examples(
    pool: Pool,
    seed: int = 0,
    epoch: int = 0,
    negatives: Sequence[str] = KINDS,
    false_negatives: int = 100,
    each: int = 1,
) -> Iterator[Example]:
    """Yield one example for every passage of the pool. The seed and the epoch decide the order and the labels.

    Args:
        pool: all passages.
        seed: the same seed and epoch give the same examples.
        epoch: see `seed`.
        negatives: kinds of hard negatives. No negative has the same words as the passage, and none occurs twice.
        false_negatives: the maximum number to list.
        each: the maximum number of negatives of each kind.
    """
    order = list(range(1, len(pool) + 1))
    random.Random(f"{seed} {epoch}").shuffle(order)
    for number in order:
        passage = pool[number]
        rng = random.Random(f"{seed} {epoch} {number}")
        entity, mention = rng.choice(passage.entities)
        aspect, section_heading = rng.choice(passage.aspects)
        hard_negatives: dict[int, Negative] = {}
        for kind in negatives:
            records = FINDERS[kind](pool, passage, entity, mention, aspect, rng)
            fresh = (
                record
                for record in records
                if record.id not in hard_negatives and not _same_words(record.text, passage.text)
            )
            for record in islice(fresh, each):
                hard_negatives[record.id] = Negative(kind, record)
        carriers = pool.with_both(entity, aspect, false_negatives + 1) if false_negatives else []
        yield Example(
            entity,
            aspect,
            Query(entity=mention, aspect=section_heading),
            passage,
            tuple(hard_negatives.values()),
            tuple(carrier for carrier in carriers if carrier != number)[:false_negatives],
        )


def batches(pool: Pool, size: int = 32, seed: int = 0, epoch: int = 0, **options: Any) -> Iterator[list[Example]]:
    """Yield the examples of an epoch in batches, one for each training step; the last batch may be smaller."""
    batch: list[Example] = []
    for example in examples(pool, seed, epoch, **options):
        batch.append(example)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def false_negatives(batch: Sequence[Example], passages: Sequence[PoolPassage]) -> list[list[bool]]:
    """For each example and passage, tell whether the passage answers the query but belongs to another example.

    The loss leaves these pairs out.
    """
    return [
        [record.id != example.passage.id and record.answers(example.entity, example.aspect) for record in passages]
        for example in batch
    ]


def _other_section(
    pool: Pool, passage: PoolPassage, entity: str, words: str, aspect: str, rng: random.Random
) -> Iterator[PoolPassage]:
    """Yield other passages of the same document, about another aspect."""
    numbers = [number for number in pool.of_document(passage.document) if number != passage.id]
    rng.shuffle(numbers)
    return _matching(pool, numbers, lambda record: all(aspect != name for name, _ in record.aspects))


def _bm25_neighbour(
    pool: Pool, passage: PoolPassage, entity: str, words: str, aspect: str, rng: random.Random
) -> Iterator[PoolPassage]:
    """Yield passages with the words of the query: the best ones, in random order."""
    numbers = [n for n in pool.neighbours(f"{words} {heading(aspect)}", CANDIDATES) if n != passage.id]
    rng.shuffle(numbers)
    return _matching(pool, numbers, lambda record: not record.answers(entity, aspect))


def _other_entity(
    pool: Pool, passage: PoolPassage, entity: str, words: str, aspect: str, rng: random.Random
) -> Iterator[PoolPassage]:
    """Yield passages about the same aspect of another entity."""
    numbers = pool.with_aspect(aspect, rng.randint(1, len(pool)), CANDIDATES)
    return _matching(pool, numbers, lambda record: all(entity != identity for identity, _ in record.entities))


def _same_words(text: str, other: str) -> bool:
    """Tell whether two texts have the same words, since notes often repeat themselves."""
    return text.lower().split() == other.lower().split()


def _matching(pool: Pool, numbers: Sequence[int], matches: Callable[[PoolPassage], bool]) -> Iterator[PoolPassage]:
    return (record for record in map(pool.__getitem__, numbers[:CANDIDATES]) if matches(record))


FINDERS = {"section": _other_section, "bm25": _bm25_neighbour, "aspect": _other_entity}
