"""Passage search: rank passages, combine the rankings, and return the best passages with their evidence."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np

from capr.documents import CaprError, Span
from capr.index import (
    PASSAGES,
    PIECES,
    SENTENCES,
    Filters,
    Index,
    OtherModelError,
    PassageKey,
    PassageMatch,
    Space,
    StoredPassage,
)
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder, late_encoder
from capr.runtime.identity import Vector
from capr.runtime.onnx import Floats
from capr.runtime.ranker import Ranker
from capr.search.consistency import check_model, is_current
from capr.search.evidence import Evidence
from capr.search.fusion import DEFAULT, FUSIONS, reranked
from capr.search.hit import Hit, Neighbour, Sentence, Stage
from capr.search.parse import ParsedQuery
from capr.search.reranking import (
    COMPARED,
    RERANKED,
    RERANKED_AFTER_LATE,
    best_sentences,
    compare_pieces,
    rank_with,
)

DEPTH = 100  # passages of each first stage that decide the order of the first hits
LARGEST = 10_000  # maximum hits
OTHERS = 4  # maximum further hits of a group
Stages = dict[str, dict[PassageKey, Stage]]


class Mode(StrEnum):
    """The modes of search."""

    hybrid = "hybrid"
    lexical = "lexical"
    dense = "dense"
    cdv = "cdv"


class Group(StrEnum):
    """The ways to group hits."""

    document = "document"
    patient = "patient"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search; see `Library.search`."""

    k: int = 10
    mode: str = "hybrid"
    fusion: str = DEFAULT
    group: str | None = None
    neighbours: int = 0

    def __post_init__(self) -> None:
        problems = []
        for name, minimum in (("k", 1), ("neighbours", 0)):
            value = getattr(self, name)
            if type(value) is not int or not minimum <= value <= LARGEST:
                problems.append(f"{name} is {value!r}. Fix: ask for {minimum} to {LARGEST:,} passages.")
        choices = {"mode": tuple(Mode), "fusion": tuple(FUSIONS), "group": (*Group, None)}
        for name, values in choices.items():
            if (value := getattr(self, name)) not in values:
                problems.append(f"there is no {name} {value!r}. Fix: use {', '.join(filter(None, values))}.")
        if problems:
            raise CaprError(" ".join(problems))


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage to return, with its neighbours and sentences, all from one state of its document.

    Attributes:
        stored: the passage.
        score: the score that orders the hits.
        neighbours: the passages around it.
        sentences: its best sentences by the scores of a model; None if no model scored sentences.
    """

    stored: StoredPassage
    score: float
    neighbours: tuple[StoredPassage, ...]
    sentences: tuple[Sentence, ...] | None


class PassageSearch:
    """One search.

    Args:
        index: the index to search.
        parsed: the query.
        filters: conditions on passages.
        encoder: the encoder of the dense stage; None for a search without that stage.
        ranker: re-ranks the best candidates; None for a search without re-ranking.
        options: the options of the search.
        discourse: the discourse model of the cdv stage, which replaces all other first stages.

    Attributes:
        notices: notices about stages that were left out.
    """

    def __init__(
        self,
        index: Index,
        parsed: ParsedQuery,
        filters: Filters,
        encoder: Encoder | None,
        ranker: Ranker | None,
        options: SearchOptions,
        discourse: Discourse | None = None,
    ) -> None:
        self._index, self._parsed, self._filters, self._options = index, parsed, filters, options
        self._encoder, self._ranker, self._discourse = encoder, ranker, discourse
        # The best sentences of passages, if the ranker scores sentences.
        self._ranker_sentences: Mapping[PassageKey, tuple[Sentence, ...]] = {}
        self.notices: list[str] = []

    @cached_property
    def _vector(self) -> Vector | None:
        """The vector of the query."""
        if self._discourse is not None:
            return self._pair_vector(self._discourse) if any(self._parsed.pair) else None
        return self._encoded[0]

    @cached_property
    def _encoded(self) -> tuple[Vector | None, Floats | None]:
        """The vector of the query, and those of its word pieces if the index has such vectors of the same model."""
        if self._encoder is None or not self._parsed.text:
            return None, None
        encoder, identity = late_encoder(self._encoder), self._index.encoder(PIECES)
        if encoder is None or identity is None or identity.digest != encoder.piece_identity.digest:
            return self._encoder.query(self._parsed.text), None
        return encoder.query_with_pieces(self._parsed.text)

    def _pair_vector(self, discourse: Discourse) -> Vector | None:
        """Return the vector of the entity and the aspect, or None if the model knows neither.

        A vector of zeros would be equally near to every passage. A notice names the unknown words.
        """
        vector = discourse.query(*self._parsed.pair)
        halves = zip(("entity", "aspect"), self._parsed.pair, np.split(vector, 2), strict=True)
        unknown = [f"the {name} {words!r}" for name, words, half in halves if words.strip() and not half.any()]
        if unknown:
            effect = "its other half alone decides" if vector.any() else "nothing was found"
            fact = f"the discourse model knows no word of {' or of '.join(unknown)} of the query"
            self.notices.append(f"{fact}, so that {effect}")
        return vector if vector.any() else None

    def hits(self) -> tuple[list[Hit], str]:
        """Return the hits, best first, and the mode of the search."""
        stages, ordered, groups = self._rank()
        if self._options.group is None:
            candidates = self._candidates(ordered, self._options.k)
        else:
            groups, candidates = self._group_candidates(groups)
        evidence = Evidence(self._parsed, self._index)
        hits = {key: self._hit(candidate, evidence, stages) for key, candidate in candidates.items()}
        mode = "hybrid" if "fusion" in stages else next(iter(stages))
        return list(hits.values()) if self._options.group is None else _grouped(groups, hits), mode

    def _rank(self) -> tuple[Stages, list[PassageMatch], dict[str, list[PassageMatch]]]:
        """Return each stage's ranks and scores, the final ranking, and its groups.

        The first `DEPTH` passages of each first stage alone decide the order of the first hits, so that it does not
        depend on k. If they are too few, deeper candidates follow them.
        """
        group, k, depth = self._options.group, self._options.k, DEPTH
        rankings, is_complete = self._fused(depth)
        ordered = self._rerank(next(reversed(rankings.values())), rankings)
        stages = {name: _stages(ranking) for name, ranking in rankings.items()}
        groups = self._groups(ordered, group) if group else {}
        while len(groups if group else ordered) < k and not is_complete:
            depth = min(4 * depth, LARGEST)
            rankings, is_complete = self._fused(depth)
            known = {match.key for match in ordered}
            deeper = [
                match._replace(score=min(match.score, ordered[-1].score))
                for match in next(reversed(rankings.values()))
                if match.key not in known
            ]
            for name, ranking in rankings.items():
                new = {key: stage for key, stage in _stages(ranking).items() if key not in known}
                stages.setdefault(name, {}).update(new)
            ordered += deeper
            if group:
                deeper_groups = self._groups(deeper, group)
                groups |= {name: matches for name, matches in deeper_groups.items() if name not in groups}
        return stages, ordered, groups

    def _fused(self, depth: int) -> tuple[dict[str, list[PassageMatch]], bool]:
        """Return the rankings of the first stages and their fusion, and whether deeper stages would add nothing."""
        rankings = {name: list(ranking) for name, ranking in self._first_stages(depth).items()}
        is_complete = all(len(ranking) < depth for ranking in rankings.values()) or depth >= LARGEST
        if len(rankings) > 1:
            rankings["fusion"] = FUSIONS[self._options.fusion](list(rankings.items()))
        return rankings, is_complete

    def _rerank(self, ordered: list[PassageMatch], rankings: dict[str, list[PassageMatch]]) -> list[PassageMatch]:
        """Return the candidates as the late stage and the ranker order them; add the rankings of these stages."""
        if (by_pieces := self._compare_pieces(ordered)) is not None:
            rankings["late"] = by_pieces
            ordered = _joined(ordered, rankings)
        if self._ranker is not None and self._parsed.text:
            first = ordered[: RERANKED if by_pieces is None else RERANKED_AFTER_LATE]
            rankings["rerank"], self._ranker_sentences = rank_with(self._ranker, self._parsed.text, first, self._index)
            ordered = _joined(ordered, rankings)
        return list(ordered)

    def _compare_pieces(self, ordered: Sequence[PassageMatch]) -> list[PassageMatch] | None:
        """Rank the first candidates by late interaction; None if there are no vectors of word pieces."""
        if self._encoder is None or self._encoded[1] is None:
            return None
        candidates = ordered[:COMPARED]
        ranking = compare_pieces(self._encoded[1], candidates, self._index)
        check_model(self._index, PIECES, self._encoder)
        if len(ranking) < len(candidates):
            self.notices += self._index.notices(PIECES)
        return ranking

    def _first_stages(self, depth: int) -> dict[str, Sequence[PassageMatch]]:
        """Return the rankings of the first stages.

        Another thread searches for words while this one encodes the query and compares vectors.
        """
        if self._discourse is not None:
            return {"cdv": self._dense(depth, SENTENCES)}
        if self._encoder is None:
            return {"lexical": self._lexical(depth)}
        if self._options.mode == "dense":
            return {"dense": self._dense(depth)}
        lexical = _threads(os.getpid()).submit(self._lexical, depth)
        try:
            dense = self._dense(depth)
        except OtherModelError as error:
            self._encoder = None
            self.notices.append(f"this search matched words only, not meaning: {error}")
            return {"lexical": lexical.result()}
        finally:
            wait([lexical])  # also after an error, so that a search never outlives its call
        return {"lexical": lexical.result(), "dense": dense}

    def _lexical(self, depth: int) -> Sequence[PassageMatch]:
        return self._index.lexical(self._parsed.clauses, depth, self._filters)

    def _dense(self, depth: int, space: Space = PASSAGES) -> Sequence[PassageMatch]:
        if self._vector is None:
            return []
        matches = self._index.dense(self._vector, depth, self._filters, self._parsed.clauses, space)
        check_model(self._index, space, self._discourse if space == SENTENCES else self._encoder)
        return matches

    def _sentences_by_vector(self, keys: Sequence[PassageKey]) -> Mapping[PassageKey, tuple[Sentence, ...]] | None:
        """Return the best sentences of passages by their vectors, or None in a search without a discourse model."""
        if self._discourse is None or self._vector is None:
            return None
        sentences = {}
        vectors = self._index.span_vectors(keys)
        check_model(self._index, SENTENCES, self._discourse)
        for key, span_vectors in vectors.items():
            scores = (span_vectors.vectors @ self._vector).tolist()
            sentences[key] = best_sentences(span_vectors.spans, scores)
        return sentences

    def _groups(self, ordered: Sequence[PassageMatch], by: str) -> dict[str, list[PassageMatch]]:
        """Return the first passages of each document or patient."""
        ids = list(dict.fromkeys(match.key.document for match in ordered))
        names = {id: id for id in ids} if by == Group.document else self._index.patients_of(ids)
        groups: dict[str, list[PassageMatch]] = {}
        for match in ordered:
            if match.key.document in names:
                groups.setdefault(names[match.key.document], []).append(match)
        return {name: matches[: 1 + OTHERS] for name, matches in groups.items()}

    def _group_candidates(
        self, groups: Mapping[str, list[PassageMatch]]
    ) -> tuple[dict[str, list[PassageMatch]], dict[PassageKey, RankedPassage]]:
        """Return the first k groups with current passages, and these passages."""
        candidates: dict[PassageKey, RankedPassage] = {}
        current_groups: dict[str, list[PassageMatch]] = {}
        k, all_groups = self._options.k, list(groups.items())
        for begin in range(0, len(all_groups), k):
            part = all_groups[begin : begin + k]
            candidates |= self._candidates([match for _, matches in part for match in matches])
            for name, matches in part:
                if any(match.key in candidates for match in matches):
                    current_groups[name] = matches
            if len(current_groups) >= k:
                break
        return dict(list(current_groups.items())[:k]), candidates

    def _candidates(self, ordered: Sequence[PassageMatch], k: int | None = None) -> dict[PassageKey, RankedPassage]:
        """Return the first k passages, or all, except from documents that were removed or replaced meanwhile.

        Vectors are read before passages: if a passage is current afterwards, its vectors were current, too.
        """
        candidates: dict[PassageKey, RankedPassage] = {}
        step = k or max(1, len(ordered))
        for begin in range(0, len(ordered), step):
            part = ordered[begin : begin + step]
            sentences_by_vector = self._sentences_by_vector([match.key for match in part])
            passages = dict(self._index.passages([match.key for match in part]))
            neighbours: dict[PassageKey, list[PassageKey]] = {}
            if self._options.neighbours:  # read the hits again, so that they and their neighbours have the same state
                neighbours = {m.key: self._neighbours(passages[m.key]) for m in part if is_current(m, passages)}
                passages = dict(
                    self._index.passages([*neighbours, *{key for keys in neighbours.values() for key in keys}])
                )
            for match in part:
                if not is_current(match, passages):
                    continue
                near = tuple(passages[key] for key in neighbours.get(match.key, ()) if key in passages)
                if sentences_by_vector is None:
                    sentences = self._ranker_sentences.get(match.key)
                else:
                    sentences = sentences_by_vector.get(match.key, ())
                candidates[match.key] = RankedPassage(passages[match.key], match.score, near, sentences)
            if k and len(candidates) >= k:
                return dict(list(candidates.items())[:k])
        return candidates

    def _neighbours(self, stored: StoredPassage) -> list[PassageKey]:
        """Return the keys of the neighbours of a passage, in the order of the text."""
        (document, index), distance = stored.key, self._options.neighbours
        indexes = range(max(0, index - distance), min(stored.passages, index + distance + 1))
        return [PassageKey(document, neighbour) for neighbour in indexes if neighbour != index]

    def _hit(self, candidate: RankedPassage, evidence: Evidence, stages: Stages) -> Hit:
        stored = candidate.stored
        entry = stored.entry
        highlights, sentences = evidence.of(entry)
        if candidate.sentences is not None:
            sentences = tuple(_clip(candidate.sentences, entry.passage.span))
        return Hit(
            entry.passage,
            entry.text,
            candidate.score,
            stored.title,
            stored.metadata,
            entry.aspect,
            entry.mentions,
            sentences,
            highlights,
            {name: by_key[stored.key] for name, by_key in stages.items() if stored.key in by_key},
            tuple(Neighbour(near.entry.passage.span, near.entry.text) for near in candidate.neighbours),
            passages=stored.passages,
        )


def _joined(ordered: Sequence[PassageMatch], rankings: Mapping[str, Sequence[PassageMatch]]) -> list[PassageMatch]:
    """Re-rank the candidates of the last stage by the scores of all stages."""
    return reranked(ordered, [(name, ranking) for name, ranking in rankings.items() if name != "fusion"])


def _clip(sentences: Sequence[Sentence], passage: Span) -> Iterator[Sentence]:
    """Yield the parts of sentences that lie in a passage."""
    for sentence in sentences:
        span = Span(max(passage.begin, sentence.span.begin), min(passage.end, sentence.span.end))
        if span.begin < span.end:
            yield replace(sentence, span=span)


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process; a forked process does not inherit them."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="capr")


def _grouped(groups: Mapping[str, Sequence[PassageMatch]], hits: Mapping[PassageKey, Hit]) -> list[Hit]:
    """Return the best hit of each group, with the further hits of the group in `others`."""
    hits_by_group = [(name, [hits[m.key] for m in matches if m.key in hits]) for name, matches in groups.items()]
    return [replace(group[0], group=name, others=tuple(group[1:])) for name, group in hits_by_group if group]


def _stages(ranking: Sequence[PassageMatch]) -> dict[PassageKey, Stage]:
    """Return the rank and score of each passage of a ranking."""
    return {match.key: Stage(rank, match.score) for rank, match in enumerate(ranking, 1)}
