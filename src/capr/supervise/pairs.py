"""The training data of a ranking model: passages, and for each its queries and the passages that do not answer them.

It fits in one compressed file of JSON Lines, so a machine that trains needs no documents.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import groupby, product
from pathlib import Path

from capr.annotate.query import Query
from capr.annotate.vocabulary import Vocabulary
from capr.deprecation import renamed_attributes
from capr.documents import CaprError
from capr.segment import with_labels
from capr.supervise.examples import KINDS, examples
from capr.supervise.pool import Pool
from capr.supervise.split import held_out_ids
from capr.text.digest import digest_records

VIEWS = ("text", "opening", "heading", "title")
OTHER_NAMES = 8  # the maximum number of other names of an entity
CONTEXT_CHARS = 16_000  # on either side of a passage


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """A passage with its labels, which show which queries it answers."""

    document: str = ""
    title: str = ""
    heading: str = ""
    text: str = ""
    entities: tuple[str, ...] = ()
    aspects: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    opening: str = ""

    def view(self, kind: str) -> str:
        """Return the passage as a model reads it: bare, or under the opening, its heading, or title and heading.

        A number after the name of the view limits the passage to that many of its first words.

        >>> LabelledPassage("d", "Gout", "Treatment", "Rest and ice help.").view("title 2")
        'Gout | Treatment | Rest and'
        """
        name, _, words = kind.partition(" ")
        headings = {
            "text": (),
            "opening": (self.opening,),
            "heading": (self.heading,),
            "title": (self.title, self.heading),
        }[name]
        return with_labels(" ".join(self.text.split()[: int(words)]) if words else self.text, *headings)


@dataclass(frozen=True, slots=True)
class Draw:
    """A query drawn for a passage.

    Attributes:
        passage: number of the passage that answers.
        entity, aspect: their identities.
        names: names of the entity.
        heading: the heading that names the aspect in the document.
        questions: questions of the source, word for word.
        negatives: numbers of passages that do not answer.
    """

    passage: int = 0
    entity: str = ""
    aspect: str = ""
    names: tuple[str, ...] = ()
    heading: str = ""
    questions: tuple[str, ...] = ()
    negatives: tuple[int, ...] = ()

    def wordings(self, name: str) -> list[str]:
        """List all wordings of the query with that name of the entity, the one for search first."""
        return _wordings(name, self.heading)

    def draw_wording(self, rng: random.Random) -> str:
        """Draw one wording: a question of the source, or a question or form for the aspect."""
        if self.questions and (not self.names or rng.random() < 0.3):
            return rng.choice(self.questions)
        name = rng.choice(self.names[:2] if rng.random() < 0.7 else self.names)
        wordings = self.wordings(name)
        return wordings[0] if rng.random() < 0.4 else rng.choice(wordings)


@dataclass(frozen=True)
class TrainingPairs:
    """Passages and draws; the numbers of passages count from 0."""

    passages: Sequence[LabelledPassage]
    draws: Sequence[Draw]

    @classmethod
    def from_pool(
        cls,
        pool: Pool,
        vocabulary: Vocabulary,
        seed: int = 0,
        rounds: int = 4,
        each: int = 8,
        progress: Callable[[int, int], None] = lambda done, total: None,
        context: bool = False,
    ) -> TrainingPairs:
        """Draw from a pool: each passage once a round, with different labels if it has several.

        Args:
            pool: all passages.
            vocabulary: knows other names of entities.
            seed: the same seed gives the same draws.
            rounds: how often to draw each passage.
            each: the maximum number of hard negatives of each kind.
            progress: called with the number of draws done and their total.
            context: whether to keep the text before and after each passage.
        """
        records = [pool[number] for number in range(1, len(pool) + 1)]
        texts = [
            LabelledPassage(
                record.document,
                record.title,
                record.heading,
                record.text,
                tuple(entity for entity, _ in record.entities),
                tuple(aspect for aspect, _ in record.aspects),
                opening=record.opening,
            )
            for record in records
        ]
        if context:
            texts = list(_with_context(texts))
        draws: dict[tuple[int, str, str], Draw] = {}
        for epoch in range(rounds):
            for step, example in enumerate(examples(pool, seed, epoch, KINDS, 0, each), 1):
                progress(epoch * len(pool) + step, rounds * len(pool))
                record = example.passage
                key = (record.id, example.entity, example.aspect)
                if key in draws:
                    continue
                is_subject = record.entities[0][0] == example.entity
                concept = vocabulary.by_code(example.entity)
                vocabulary_names = (concept.name, *concept.names) if concept else ()
                names = [example.query.entity, *(record.names if is_subject else ()), *vocabulary_names]
                negatives = tuple(negative.passage.id - 1 for negative in example.negatives)
                draws[key] = Draw(
                    record.id - 1,
                    example.entity,
                    example.aspect,
                    tuple(dict.fromkeys(names))[: 1 + OTHER_NAMES],
                    example.query.aspect,
                    record.questions if is_subject else (),
                    negatives,
                )
        return cls(texts, list(draws.values()))

    def __add__(self, other: TrainingPairs) -> TrainingPairs:
        """Append the passages and draws of another object."""
        shift = len(self.passages)
        moved = [
            Draw(
                draw.passage + shift,
                draw.entity,
                draw.aspect,
                draw.names,
                draw.heading,
                draw.questions,
                tuple(number + shift for number in draw.negatives),
            )
            for draw in other.draws
        ]
        return TrainingPairs([*self.passages, *other.passages], [*self.draws, *moved])

    def save(self, path: Path) -> None:
        """Write the file."""
        part = path.with_name(path.name + ".part")
        with gzip.open(part, "wt", encoding="utf-8", compresslevel=6) as file:
            items: list[tuple[str, LabelledPassage | Draw]] = [
                *(("text", passage) for passage in self.passages),
                *(("draw", draw) for draw in self.draws),
            ]
            for kind, item in items:
                values = {name: value for name, value in asdict(item).items() if value}
                file.write(json.dumps({kind: values}, ensure_ascii=False) + "\n")
        part.replace(path)

    def digest(self) -> str:
        """Return the digest of the passages and draws."""
        return digest_records(
            [getattr(item, field.name) for field in fields(item)]
            for items in (self.passages, self.draws)
            for item in items
        )

    @classmethod
    def load(cls, path: Path) -> TrainingPairs:
        """Read the file."""
        passages: list[LabelledPassage] = []
        draws: list[Draw] = []
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    ((kind, values),) = json.loads(line).items()
                    values = {
                        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
                    }
                    if kind == "text":
                        passages.append(LabelledPassage(**values))
                    elif kind == "draw":
                        draws.append(Draw(**values))
                    else:
                        raise ValueError(f"{kind!r} is neither 'text' nor 'draw'")
        except (OSError, EOFError, ValueError, TypeError, AttributeError, zlib.error) as error:
            fix = "make the file again from the documents"
            raise CaprError(f"{path} holds no pairs to train with ({error}). Fix: {fix}.") from error
        return cls(passages, draws)

    def split(self, share: float, seed: int = 0) -> tuple[TrainingPairs, TrainingPairs]:
        """Split by documents: one part for training, and a share of the documents for validation.

        A hash of its id decides whether a document is held out; at least one document with queries is
        (`capr.supervise.split.held_out_ids`). Neither part keeps hard negatives that lie in the other.
        """
        with_queries = {self.passages[draw.passage].document for draw in self.draws}
        held_out = held_out_ids({text.document for text in self.passages}, with_queries, share, seed)
        return self.part(lambda text: text.document not in held_out), self.part(lambda text: text.document in held_out)

    def part(self, keep: Callable[[LabelledPassage], bool]) -> TrainingPairs:
        """Keep the passages for which `keep` is true, with their draws."""
        kept_numbers = [number for number, text in enumerate(self.passages) if keep(text)]
        new_numbers = {number: position for position, number in enumerate(kept_numbers)}
        draws = [
            Draw(
                new_numbers[draw.passage],
                draw.entity,
                draw.aspect,
                draw.names,
                draw.heading,
                draw.questions,
                tuple(new_numbers[negative] for negative in draw.negatives if negative in new_numbers),
            )
            for draw in self.draws
            if draw.passage in new_numbers
        ]
        return TrainingPairs([self.passages[number] for number in kept_numbers], draws)

    @cached_property
    def _carriers(self) -> dict[tuple[str, str], set[int]]:
        """The passages that carry an entity and an aspect."""
        carriers: dict[tuple[str, str], set[int]] = {}
        for number, text in enumerate(self.passages):
            for label in product(text.entities, text.aspects):
                carriers.setdefault(label, set()).add(number)
        return carriers

    def answering(self, draw: Draw) -> set[int]:
        """Return the passages that may answer a draw."""
        return self._carriers.get((draw.entity, draw.aspect), set()) | {draw.passage}

    def by_passage(self) -> list[list[Draw]]:
        """Group the draws by their passage."""
        groups: dict[int, list[Draw]] = {}
        for draw in self.draws:
            groups.setdefault(draw.passage, []).append(draw)
        return list(groups.values())

    def lists(self, size: int, limit: int, seed: int = 0) -> Iterator[tuple[str, list[int], set[int]]]:
        """Yield validation queries: a wording, its candidates, and the candidates that answer it.

        The candidates are the hard negatives and random passages.
        """
        rng = random.Random(f"{seed} lists")
        draws = list(self.draws)
        rng.shuffle(draws)
        numbers = range(len(self.passages))
        for draw in draws[:limit]:
            random_numbers = rng.sample(numbers, min(size, len(numbers)))
            candidates = list(dict.fromkeys((draw.passage, *draw.negatives, *random_numbers)))[:size]
            wording = draw.wordings(draw.names[0])[0] if draw.names else draw.questions[0]
            yield wording, candidates, self.answering(draw) & set(candidates)


def _with_context(texts: Sequence[LabelledPassage]) -> Iterator[LabelledPassage]:
    """Add the text before and after each passage in its document, as far as a window can reach."""
    for _, group in groupby(texts, key=lambda text: text.document):
        members = list(group)
        for position, text in enumerate(members):
            before = "\n".join(neighbour.text for neighbour in members[:position])[-CONTEXT_CHARS:]
            after = "\n".join(neighbour.text for neighbour in members[position + 1 :])[:CONTEXT_CHARS]
            yield replace(text, before=before, after=after)


@lru_cache(maxsize=100_000)
def _wordings(entity: str, aspect: str) -> list[str]:
    return Query(entity=entity, aspect=aspect).wordings()


__getattr__ = renamed_attributes(__name__, {"Pairs": "TrainingPairs"})
