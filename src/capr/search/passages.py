"""Passages: ranks them, joins the rankings, and shows the best with the evidence."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np

from capr.documents import CaprError, Span
from capr.index import Discourse, Encoder, Filters, Found, Grain, Index, Stored
from capr.index.embedded import OtherModelError
from capr.index.protocol import Vector
from capr.search.evidence import BEST, Evidence
from capr.search.fusion import DEFAULT, FUSIONS, reranked
from capr.search.hit import Hit, Neighbour, Sentence, Stage
from capr.search.parse import Parsed
from capr.search.prepare import wording
from capr.search.rerank import Ranker

DEPTH = 100  # passages that each first stage gives
RERANKED = 32  # passages that a ranker reads
LARGEST = 10_000  # hits
OTHERS = 4  # further hits shown of a group
Stages = Mapping[str, Mapping[int, Stage]]


class Mode(StrEnum):
    """First stages."""

    hybrid = "hybrid"
    lexical = "lexical"
    dense = "dense"
    cdv = "cdv"


class Group(StrEnum):
    """What hits may stand for."""

    document = "document"
    patient = "patient"


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; see `Library.search`."""

    k: int = 10
    mode: str = "hybrid"
    fusion: str = DEFAULT
    group: str | None = None
    neighbours: int = 0

    def __post_init__(self) -> None:
        wrong = []
        for name, least in (("k", 1), ("neighbours", 0)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= LARGEST:
                wrong.append(f"{name} is {value!r}. Fix: ask for {least} to {LARGEST:,} passages.")
        known = {"mode": tuple(Mode), "fusion": tuple(FUSIONS), "group": (*Group, None)}
        for name, values in known.items():
            if (value := getattr(self, name)) not in values:
                wrong.append(f"there is no {name} {value!r}. Fix: use {', '.join(filter(None, values))}.")
        if wrong:
            raise CaprError(" ".join(wrong))


def same_model(index: Index, grain: Grain, model: Encoder | Discourse | None) -> None:
    """Complains if vectors that were just read may be of another model; a process may exchange them at any time."""
    known = index.encoder(grain)
    if model is not None and known is not None and known.digest != model.identity.digest:
        raise OtherModelError(f"{known.name} ({known.digest[:8]})")


class PassageSearch:
    """One search.

    Args:
        index: where.
        parsed: what for.
        filters: what passages have to pass.
        encoder: for the dense stage; None leaves it out.
        ranker: puts the best candidates in order; None leaves them as they are.
        options: how.
        discourse: instead of all other first stages; reads the pair of the query.
    """

    def __init__(
        self,
        index: Index,
        parsed: Parsed,
        filters: Filters,
        encoder: Encoder | None,
        ranker: Ranker | None,
        options: Options,
        discourse: Discourse | None = None,
    ) -> None:
        self._index, self._parsed, self._filters, self._options = index, parsed, filters, options
        self._encoder, self._ranker, self._discourse = encoder, ranker, discourse
        self.notices: list[str] = []  # of what had to be left out

    @cached_property
    def _vector(self) -> Vector | None:
        """Of the query."""
        if self._discourse is not None:
            return self._of_pair(self._discourse) if any(self._parsed.pair) else None
        return self._encoder.query(self._parsed.text) if self._encoder is not None and self._parsed.text else None

    def _of_pair(self, discourse: Discourse) -> Vector | None:
        """None if the model knows neither half, since every passage is as near to zeros; a notice tells which."""
        vector = discourse.query(*self._parsed.pair)
        halves = zip(("entity", "aspect"), self._parsed.pair, np.split(vector, 2), strict=True)
        unknown = [f"the {name} {words!r}" for name, words, half in halves if words.strip() and not half.any()]
        if unknown:
            left = "its other half alone decides" if vector.any() else "nothing was found"
            fact = f"the discourse model knows no word of {' or of '.join(unknown)} of the query"
            self.notices.append(f"{fact}, so that {left}")
        return vector if vector.any() else None

    def hits(self) -> tuple[list[Hit], str]:
        """The hits, best first, and the mode in which they were found."""
        rankings, ordered, groups = self._ordered()
        if self._options.group is None:
            chosen = self._chosen(ordered, self._options.k)
        else:
            groups = dict(list(groups.items())[: self._options.k])
            chosen = self._chosen([found for some in groups.values() for found in some])
        stages = {name: _stages(ranking, chosen) for name, ranking in rankings.items()}
        evidence = Evidence(self._parsed, self._index)
        scored = self._scored(list(chosen))
        made = {number: self._hit(*found, evidence, stages, scored) for number, found in chosen.items()}
        mode = "hybrid" if "fusion" in rankings else next(iter(rankings))
        return list(made.values()) if self._options.group is None else list(_grouped(groups, made)), mode

    def _ordered(self) -> tuple[dict[str, Sequence[Found]], Sequence[Found], dict[str, list[Found]]]:
        """What each stage gives, the last ranking, and its groups; goes deeper until there are enough groups."""
        group, k = self._options.group, self._options.k
        depth = max(DEPTH, 2 * k)
        while True:
            rankings = self._first_stages(depth)
            exhausted = all(len(ranking) < depth for ranking in rankings.values()) or depth >= LARGEST
            if len(rankings) > 1:
                rankings["fusion"] = FUSIONS[self._options.fusion](list(rankings.items()))
            ordered = next(reversed(rankings.values()))
            groups = self._groups(ordered, group) if group else {}
            if group is None or exhausted or len(groups) >= k:
                break
            depth *= 4  # all candidates belong to a few groups
        if self._ranker is not None and self._parsed.text:
            rankings["rerank"] = self._read(self._ranker, ordered)
            ordered = reranked(ordered, [(name, rankings[name]) for name in rankings if name != "fusion"])
            groups = self._groups(ordered, group) if group else {}
        return rankings, ordered, groups

    def _first_stages(self, depth: int) -> dict[str, Sequence[Found]]:
        """Words in another thread, while this one encodes the query and compares vectors."""
        if self._discourse is not None:
            return {"cdv": self._dense(depth, Grain.SENTENCES)}
        if self._encoder is None:
            return {"lexical": self._lexical(depth)}
        if self._options.mode == "dense":
            return {"dense": self._dense(depth)}
        lexical = _threads(os.getpid()).submit(self._lexical, depth)
        try:
            dense = self._dense(depth)
        except OtherModelError as error:
            self._encoder = None
            self.notices.append(f"only words were compared, not meanings: {error}")
            return {"lexical": lexical.result()}
        return {"lexical": lexical.result(), "dense": dense}

    def _lexical(self, depth: int) -> Sequence[Found]:
        return self._index.lexical(self._parsed.clauses, depth, self._filters)

    def _dense(self, depth: int, grain: Grain = Grain.PASSAGES) -> Sequence[Found]:
        if self._vector is None:
            return []
        found = self._index.dense(self._vector, depth, self._filters, self._parsed.clauses, grain)
        same_model(self._index, grain, self._encoder if grain is Grain.PASSAGES else self._discourse)
        return found

    def _scored(self, numbers: Sequence[int]) -> Mapping[int, tuple[Sentence, ...]] | None:
        """The best sentences of passages by their vectors; None where sentences have not been compared."""
        if self._discourse is None or self._vector is None:
            return None
        found = {}
        kept = self._index.sentences(numbers)
        same_model(self._index, Grain.SENTENCES, self._discourse)
        for number, sentences in kept.items():
            scores = (sentences.vectors @ self._vector).tolist()
            both = [Sentence(span, round(score, 4)) for span, score in zip(sentences.spans, scores, strict=True)]
            found[number] = tuple(sorted(both, key=lambda one: (-one.score, one.span))[:BEST])
        return found

    def _read(self, ranker: Ranker, ordered: Sequence[Found]) -> list[Found]:
        """The first candidates in the order that the ranker gives them."""
        some = self._index.passages([found.number for found in ordered[:RERANKED]])
        numbers = [found.number for found in ordered[:RERANKED] if found.number in some]
        texts = [wording(some[number].title, some[number].entry) for number in numbers]
        scores = ranker.scores(self._parsed.text, texts)
        return sorted((Found(n, s) for n, s in zip(numbers, scores, strict=True)), key=lambda found: -found.score)

    def _groups(self, ordered: Sequence[Found], by: str) -> dict[str, list[Found]]:
        """The first passages of each document or patient."""
        keys = self._index.groups([found.number for found in ordered], by)
        groups: dict[str, list[Found]] = {}
        for found in ordered:
            if found.number in keys:
                groups.setdefault(keys[found.number], []).append(found)
        return {key: found[: 1 + OTHERS] for key, found in groups.items()}

    def _chosen(self, ordered: Sequence[Found], k: int | None = None) -> dict[int, tuple[Stored, float]]:
        """The first k passages, or all, with their scores; what was removed meanwhile is left out."""
        chosen: dict[int, tuple[Stored, float]] = {}
        step = k or max(1, len(ordered))
        for begin in range(0, len(ordered), step):
            part = ordered[begin : begin + step]
            known = self._index.passages([found.number for found in part])
            chosen |= {found.number: (known[found.number], found.score) for found in part if found.number in known}
            if k and len(chosen) >= k:
                return dict(list(chosen.items())[:k])
        return chosen

    def _hit(
        self,
        stored: Stored,
        score: float,
        evidence: Evidence,
        stages: Stages,
        scored: Mapping[int, tuple[Sentence, ...]] | None,
    ) -> Hit:
        entry = stored.entry
        highlights, sentences = evidence.of(entry)
        if scored is not None:
            sentences = tuple(_within(entry.passage.span, scored.get(stored.number, ())))
        distance = self._options.neighbours
        around = self._index.neighbours(stored.number, distance) if distance > 0 else ()
        return Hit(
            entry.passage,
            entry.text,
            score,
            stored.title,
            stored.metadata,
            entry.aspect,
            entry.mentions,
            sentences,
            highlights,
            {name: said[stored.number] for name, said in stages.items() if stored.number in said},
            tuple(Neighbour(near.entry.passage.span, near.entry.text) for near in around),
            passages=stored.passages,
        )


def _within(passage: Span, sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Sentences as far as they lie in a passage."""
    for one in sentences:
        span = Span(max(passage.begin, one.span.begin), min(passage.end, one.span.end))
        if span.begin < span.end:
            yield replace(one, span=span)


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """Threads of this process, which a forked one does not have."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="capr")


def _grouped(groups: Mapping[str, Sequence[Found]], made: Mapping[int, Hit]) -> list[Hit]:
    """The best hit of each group, with the others in it."""
    lists = [(key, [made[f.number] for f in found if f.number in made]) for key, found in groups.items()]
    return [replace(found[0], group=key, others=tuple(found[1:])) for key, found in lists if found]


def _stages(ranking: Sequence[Found], wanted: Collection[int]) -> dict[int, Stage]:
    """What a ranking says of some passages."""
    return {f.number: Stage(rank, f.score) for rank, f in enumerate(ranking, 1) if f.number in wanted}
