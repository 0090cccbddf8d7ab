"""Examples: a query, the passage that answers it, and passages that do not but look as if they did.

Reference: Grundmann et al. (CAPR): in each step passages are drawn that have labels of both kinds, and for each passage
one of its entities and one of its aspects; this pair is the query.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from capr.annotate.query import Query, heading
from capr.supervise.pool import Pool, Record

KINDS = ("section", "bm25", "aspect")
LOOKED_AT = 20  # candidates for each hard negative


@dataclass(frozen=True, slots=True)
class Negative:
    """A passage that does not answer, and why it is hard to tell: `section`, `bm25` or `aspect`."""

    kind: str
    passage: Record


@dataclass(frozen=True, slots=True)
class Example:
    """A query and its passage.

    Attributes:
        entity, aspect: their identities, by which other passages are known to answer as well.
        query: in the words of the passage's own mention and heading.
        passage: that answers it.
        negatives: that do not.
        false_negatives: numbers of other passages that carry the same labels, as many as were asked for.
    """

    entity: str
    aspect: str
    query: Query
    passage: Record
    negatives: tuple[Negative, ...] = ()
    false_negatives: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {
            "entity": self.query.entity,
            "aspect": self.query.aspect,
            "entity_id": self.entity,
            "aspect_id": self.aspect,
            "query": self.query.wording,
            **_place(self.passage),
            "negatives": [{"kind": negative.kind, **_place(negative.passage)} for negative in self.negatives],
            "false_negatives": list(self.false_negatives),
        }


def _place(record: Record) -> dict[str, Any]:
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
    """One example for every passage of the pool, in an order and with labels that the seed and the epoch decide.

    Args:
        pool: all passages.
        seed: the same seed gives the same examples,
        epoch: in the same epoch.
        negatives: kinds of hard negatives: none that has the same words, and none twice.
        false_negatives: how many to list, at most.
        each: how many negatives of each kind, at most.
    """
    order = list(range(1, len(pool) + 1))
    random.Random(f"{seed} {epoch}").shuffle(order)
    for number in order:
        passage = pool[number]
        draw = random.Random(f"{seed} {epoch} {number}")
        entity, words = draw.choice(passage.entities)
        aspect, named = draw.choice(passage.aspects)
        found: dict[int, Negative] = {}
        for kind in negatives:
            records = FINDERS[kind](pool, passage, entity, words, aspect, draw)
            new = (record for record in records if record.id not in found and not _same(record.text, passage.text))
            for record in islice(new, each):
                found[record.id] = Negative(kind, record)
        others = pool.with_both(entity, aspect, false_negatives + 1) if false_negatives else []
        yield Example(
            entity,
            aspect,
            Query(entity=words, aspect=named),
            passage,
            tuple(found.values()),
            tuple(other for other in others if other != number)[:false_negatives],
        )


def batches(pool: Pool, size: int = 32, seed: int = 0, epoch: int = 0, **options: Any) -> Iterator[list[Example]]:
    """The examples of an epoch, so many at a time, as one training step sees them; the last batch may be smaller."""
    batch: list[Example] = []
    for example in examples(pool, seed, epoch, **options):
        batch.append(example)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def false_negatives(batch: Sequence[Example], passages: Sequence[Record]) -> list[list[bool]]:
    """For each example and each passage: does the passage answer the query though it is not the example's own?

    The loss leaves these pairs out.
    """
    return [
        [record.id != example.passage.id and record.answers(example.entity, example.aspect) for record in passages]
        for example in batch
    ]


def _other_section(
    pool: Pool, passage: Record, entity: str, words: str, aspect: str, draw: random.Random
) -> Iterator[Record]:
    """Other passages of the same document, about another aspect."""
    numbers = [number for number in pool.of_document(passage.document) if number != passage.id]
    draw.shuffle(numbers)
    return _suiting(pool, numbers, lambda record: all(aspect != mine for mine, _ in record.aspects))


def _bm25_neighbour(
    pool: Pool, passage: Record, entity: str, words: str, aspect: str, draw: random.Random
) -> Iterator[Record]:
    """Passages with the words of the query; of the best, in any order."""
    numbers = [n for n in pool.neighbours(f"{words} {heading(aspect)}", LOOKED_AT) if n != passage.id]
    draw.shuffle(numbers)
    return _suiting(pool, numbers, lambda record: not record.answers(entity, aspect))


def _other_entity(
    pool: Pool, passage: Record, entity: str, words: str, aspect: str, draw: random.Random
) -> Iterator[Record]:
    """Passages about the same aspect of another entity."""
    numbers = pool.with_aspect(aspect, draw.randint(1, len(pool)), LOOKED_AT)
    return _suiting(pool, numbers, lambda record: all(entity != mine for mine, _ in record.entities))


def _same(one: str, other: str) -> bool:
    """Whether two texts say the same in the same words, as notes often repeat themselves."""
    return one.lower().split() == other.lower().split()


def _suiting(pool: Pool, numbers: Sequence[int], suits: Callable[[Record], bool]) -> Iterator[Record]:
    return (record for record in map(pool.__getitem__, numbers[:LOOKED_AT]) if suits(record))


FINDERS = {"section": _other_section, "bm25": _bm25_neighbour, "aspect": _other_entity}
