"""What a ranking model learns from: passages, and for each what may be asked of it and which others do not answer that.

All of it is one compressed file of JSON Lines, so that a machine that trains needs no documents.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from itertools import groupby, product
from pathlib import Path

from capr.annotate.query import Query
from capr.annotate.vocabulary import Vocabulary
from capr.documents import CaprError
from capr.segment import under
from capr.supervise.examples import KINDS, examples
from capr.supervise.pool import Pool

VIEWS = ("text", "opening", "heading", "title")
NAMES = 8  # other names of an entity that are used
REACH = 16_000  # characters on either side of a passage


@dataclass(frozen=True, slots=True)
class Text:
    """A passage, with the labels by which it is known to answer."""

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
        """The passage as a model reads it: bare, under the document's opening, its heading, or title and heading.

        After a blank may stand how many of its first words are read.

        >>> Text("d", "Gout", "Treatment", "Rest and ice help.").view("title 2")
        'Gout | Treatment | Rest and'
        """
        name, _, words = kind.partition(" ")
        above = {
            "text": (), "opening": (self.opening,), "heading": (self.heading,), "title": (self.title, self.heading)
        }[name]  # fmt: skip
        return under(" ".join(self.text.split()[: int(words)]) if words else self.text, *above)


@dataclass(frozen=True, slots=True)
class Draw:
    """What is asked of a passage.

    Attributes:
        passage: number of the passage that answers.
        entity, aspect: their identities.
        names: of the entity.
        heading: of the aspect, as the document has it.
        questions: that the source asks, word for word.
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
        """All ways to ask for the aspect of an entity with that name, the one for search first."""
        return _wordings(name, self.heading)

    def worded(self, draw: random.Random) -> str:
        """One way to ask, at random: a question of the source, or one of the questions and forms for the aspect."""
        if self.questions and (not self.names or draw.random() < 0.3):
            return draw.choice(self.questions)
        name = draw.choice(self.names[:2] if draw.random() < 0.7 else self.names)
        wordings = self.wordings(name)
        return wordings[0] if draw.random() < 0.4 else draw.choice(wordings)


@dataclass(frozen=True)
class Pairs:
    """Passages and draws; the numbers of passages count from 0."""

    passages: Sequence[Text]
    draws: Sequence[Draw]

    @classmethod
    def drawn(
        cls, pool: Pool, vocabulary: Vocabulary, seed: int = 0, rounds: int = 4, each: int = 8,
        progress: Callable[[int, int], None] = lambda done, total: None, context: bool = False,
    ) -> Pairs:  # fmt: skip
        """Draws from a pool: each passage in every round, with other labels if it has others.

        Args:
            pool: all passages.
            vocabulary: knows other names of entities.
            seed: the same seed gives the same draws.
            rounds: how often each passage is drawn.
            each: hard negatives of each kind, at most.
            progress: is told how many draws are done, and of how many.
            context: whether each passage is kept with what stands before and after it.
        """
        records = [pool[number] for number in range(1, len(pool) + 1)]
        texts = [
            Text(
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
            texts = list(_surrounded(texts))
        found: dict[tuple[int, str, str], Draw] = {}
        for epoch in range(rounds):
            for number, example in enumerate(examples(pool, seed, epoch, KINDS, 0, each), 1):
                progress(epoch * len(pool) + number, rounds * len(pool))
                record = example.passage
                label = (record.id, example.entity, example.aspect)
                if label in found:
                    continue
                subject = record.entities[0][0] == example.entity
                concept = vocabulary.by_code(example.entity)
                known = (concept.name, *concept.names) if concept else ()
                names = [example.query.entity, *(record.names if subject else ()), *known]
                negatives = tuple(negative.passage.id - 1 for negative in example.negatives)
                found[label] = Draw(
                    record.id - 1,
                    example.entity,
                    example.aspect,
                    tuple(dict.fromkeys(names))[: 1 + NAMES],
                    example.query.aspect,
                    record.questions if subject else (),
                    negatives,
                )
        return cls(texts, list(found.values()))

    def __add__(self, other: Pairs) -> Pairs:
        """Both, the other's passages after these."""
        shift = len(self.passages)
        moved = [
            Draw(
                d.passage + shift, d.entity, d.aspect, d.names, d.heading, d.questions,
                tuple(number + shift for number in d.negatives),
            )
            for d in other.draws
        ]  # fmt: skip
        return Pairs([*self.passages, *other.passages], [*self.draws, *moved])

    def save(self, path: Path) -> None:
        """Writes the file."""
        part = path.with_name(path.name + ".part")
        with gzip.open(part, "wt", encoding="utf-8", compresslevel=6) as file:
            items: list[Text | Draw] = [*self.passages, *self.draws]
            for item in items:
                values = {name: value for name, value in asdict(item).items() if value}
                file.write(json.dumps({type(item).__name__.lower(): values}, ensure_ascii=False) + "\n")
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Pairs:
        """Reads the file."""
        passages: list[Text] = []
        draws: list[Draw] = []
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    ((kind, values),) = json.loads(line).items()
                    values = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
                    if kind == "text":
                        passages.append(Text(**values))
                    elif kind == "draw":
                        draws.append(Draw(**values))
                    else:
                        raise ValueError(f"a {kind!r} is neither a text nor a draw")
        except (OSError, EOFError, ValueError, TypeError, AttributeError, zlib.error) as error:
            fix = "make the file again, from the documents"
            raise CaprError(f"{path} holds no pairs to train with ({error}). Fix: {fix}.") from error
        return cls(passages, draws)

    def split(self, share: float, seed: int = 0) -> tuple[Pairs, Pairs]:
        """Two parts that have no document in common: for training, and a share of the documents to validate on.

        Hard negatives that are in the other part are left out.
        """
        held = {text.document for text in self.passages if _fraction(f"{seed} {text.document}") < share}
        return self.part(lambda text: text.document not in held), self.part(lambda text: text.document in held)

    def part(self, wanted: Callable[[Text], bool]) -> Pairs:
        """The passages that are wanted, with what is asked of them."""
        kept = [number for number, text in enumerate(self.passages) if wanted(text)]
        new = {number: place for place, number in enumerate(kept)}
        draws = [
            Draw(
                new[d.passage], d.entity, d.aspect, d.names, d.heading, d.questions,
                tuple(new[n] for n in d.negatives if n in new),
            )
            for d in self.draws
            if d.passage in new
        ]  # fmt: skip
        return Pairs([self.passages[number] for number in kept], draws)

    @cached_property
    def _carriers(self) -> dict[tuple[str, str], set[int]]:
        """The passages that carry an entity and an aspect."""
        found: dict[tuple[str, str], set[int]] = {}
        for number, text in enumerate(self.passages):
            for label in product(text.entities, text.aspects):
                found.setdefault(label, set()).add(number)
        return found

    def answering(self, draw: Draw) -> set[int]:
        """The passages that may answer what was drawn."""
        return self._carriers.get((draw.entity, draw.aspect), set()) | {draw.passage}

    def by_passage(self) -> list[list[Draw]]:
        """The draws of each passage that has some."""
        found: dict[int, list[Draw]] = {}
        for draw in self.draws:
            found.setdefault(draw.passage, []).append(draw)
        return list(found.values())

    def lists(self, size: int, limit: int, seed: int = 0) -> Iterator[tuple[str, list[int], set[int]]]:
        """Queries to validate with: a wording, candidates (hard negatives and others at random), those that answer."""
        draw = random.Random(f"{seed} lists")
        chosen = list(self.draws)
        draw.shuffle(chosen)
        everything = range(len(self.passages))
        for one in chosen[:limit]:
            others = draw.sample(everything, min(size, len(everything)))
            candidates = list(dict.fromkeys((one.passage, *one.negatives, *others)))[:size]
            asked = one.wordings(one.names[0])[0] if one.names else one.questions[0]
            yield asked, candidates, self.answering(one) & set(candidates)


def _surrounded(texts: Sequence[Text]) -> Iterator[Text]:
    """Passages with the others of their document before and after them, as far as a window can reach."""
    for _, some in groupby(texts, key=lambda text: text.document):
        members = list(some)
        for place, text in enumerate(members):
            before = "\n".join(other.text for other in members[:place])[-REACH:]
            after = "\n".join(other.text for other in members[place + 1 :])[:REACH]
            yield replace(text, before=before, after=after)


@lru_cache(maxsize=100_000)
def _wordings(entity: str, aspect: str) -> list[str]:
    return Query(entity=entity, aspect=aspect).wordings()


def _fraction(name: str) -> float:
    """A number from 0 to 1 that depends on nothing but the name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6]) / 256**6
