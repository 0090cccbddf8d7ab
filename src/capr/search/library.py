"""The library: documents on disk, and the search over them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from capr.annotate import Query, Vocabulary
from capr.annotate.mentions import Annotator, annotator
from capr.documents import CaprError, Document, Notice, Problem, read
from capr.index import EmbeddedIndex, Encoder, Filters, Found, OnnxEncoder, Prepared, Stats, Stored
from capr.index.digest import digest
from capr.index.filters import ENTITY, field_name
from capr.index.verify import Check, verify
from capr.search.evidence import Evidence
from capr.search.fusion import FUSIONS
from capr.search.hit import Hit, Neighbour, Results, Stage
from capr.search.parse import Parsed, Parser
from capr.search.prepare import encoded, prepared, wording
from capr.search.rerank import OnnxRanker, Ranker

MODES = ("hybrid", "lexical", "dense")
GROUPS = ("document", "patient")
DEPTH = 100  # passages that each first stage gives
RERANKED = 50  # passages that a re-ranker reads
LARGEST = 10_000  # hits
MANY = 1_000_000  # values of a field that a * is compared with
OTHERS = 4  # further hits shown of a group
BATCH = 256  # passages that are encoded and kept at once
WITHOUT = 2000  # passages that are kept at once if they are not encoded
KNOWN_VALUES = 8  # of a field, told where a filter finds nothing

Given = Document | str | os.PathLike[str]


@dataclass
class Added:
    """What became of documents that were added.

    Attributes:
        added: documents that are new.
        replaced: documents that had been there with other contents.
        unchanged: documents that had been there just so.
        passages: of the documents added and replaced.
        encoded: passages that the encoder had to read; the vectors of others were known.
        problems: documents that could not be added, and why.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    passages: int = 0
    encoded: int = 0
    problems: list[Problem] = field(default_factory=list)


class Library:
    """Documents in a folder, found by words and by meaning.

    Several processes may search while one adds. What `add` has kept survives whatever happens to the process.

    Args:
        path: the folder; made by the first `add`.
        encoder: turns texts into vectors: a folder or an `Encoder`; the one that the library remembers, if not given.
        ranker: re-ranks the best candidates: a folder or a `Ranker`; none, if not given.
        vocabulary: with names of your own.

    Example:
        >>> import capr, tempfile
        >>> library = Library(tempfile.mkdtemp() + "/notes")
        >>> library.add(Document("n1", "PLAN: Start aspirin after the heart attack.")).added
        1
        >>> hit = library.search("myocardial infarction")[0]
        >>> hit.document, [hit[span] for span in hit.highlights]
        ('n1', ['heart attack'])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoder: Encoder | str | os.PathLike[str] | None = None,
        ranker: Ranker | str | os.PathLike[str] | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.path = Path(path)
        self.vocabulary = vocabulary or Vocabulary.load()
        self._given_encoder, self._given_ranker = encoder, ranker
        self._index: EmbeddedIndex | None = None
        self._encoder: Encoder | None = None

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the files."""
        if self._index is not None:
            self._index.close()
            self._index = None

    @property
    def index(self) -> EmbeddedIndex:
        """The engine."""
        if self._index is None:
            self._index = EmbeddedIndex(self.path)
        return self._index

    # --- changing ---

    def add(
        self,
        documents: Given | Iterable[Given],
        *,
        replace: bool = False,
        tagger: bool = False,
        on_commit: Callable[[Sequence[str]], None] | None = None,
        on_problem: Callable[[Problem], None] | None = None,
    ) -> Added:
        """Adds documents. Interrupted, it goes on where it stopped when it is called with the same documents again.

        Args:
            documents: one or many, or files and folders to read.
            replace: exchange a document whose id is there with other contents, instead of reporting a problem.
            tagger: look for entities that the vocabulary does not have, too, which is many times slower.
            on_commit: called with the ids of documents once they are kept for good.
            on_problem: called with each problem as it is met.

        Raises:
            CaprError: another process is writing, the encoder is missing or is another one than before.
        """
        if self._index is None:
            self._index = EmbeddedIndex(self.path, create=True)
        outcome = Added()
        finder = annotator(tagger, self.vocabulary)
        with self.index.writing() as writer:
            encoder = self._encoder_to_add()
            if encoder is not None:
                writer.set_encoder(encoder.identity)
                writer.commit()
            for batch in self._batches(documents, finder, replace, encoder is not None, outcome, on_problem):
                if encoder is not None:
                    batch, count = encoded(batch, encoder, self.index)
                    outcome.encoded += count
                for one in batch:
                    writer.add(one)
                writer.commit()
                if on_commit:
                    on_commit([one.document.id for one in batch])
        return outcome

    def _batches(
        self,
        documents: Given | Iterable[Given],
        finder: Annotator,
        replace: bool,
        with_encoder: bool,
        outcome: Added,
        on_problem: Callable[[Problem], None] | None,
    ) -> Iterator[list[Prepared]]:
        """Documents that are new or changed, prepared, some at a time; counts them."""

        def tell(problem: Problem) -> None:
            if not isinstance(problem, Notice):
                outcome.problems.append(problem)
            if on_problem:
                on_problem(problem)

        batch: dict[str, Prepared] = {}
        size = 0
        for document in _documents(documents, tell):
            if problem := _unusable(document):
                tell(problem)
                continue
            whole = digest(document)
            waiting = batch.get(document.id)
            known = waiting.digest if waiting else self.index.digests([document.id]).get(document.id)
            if known == whole:
                outcome.unchanged += 1
                continue
            if known is not None and not replace:
                file = str(document.metadata.get("file", ""))
                fact = f"the library has a document {document.id!r} with other contents"
                tell(Problem(fact, "add it with --replace, or give it another id", file, record=document.id))
                continue
            one = prepared(document, finder, whole)
            batch[document.id] = one
            outcome.replaced += known is not None
            outcome.added += known is None
            outcome.passages += len(one.entries)
            size += len(one.entries)
            if size >= (BATCH if with_encoder else WITHOUT) or len(batch) >= WITHOUT:
                yield list(batch.values())
                batch, size = {}, 0
        if batch:
            yield list(batch.values())

    def remove(
        self, ids: str | Iterable[str] = (), *, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None
    ) -> int:
        """Removes documents by their ids, or all that pass the filters; gives how many there were."""
        chosen = self._filters(filters)
        if chosen.without:
            raise CaprError("what is removed cannot depend on the entity of a query. Fix: leave `without` out.")
        with self.index.writing() as writer:
            wanted = [ids] if isinstance(ids, str) else list(ids)
            if chosen:
                wanted += self.index.ids(chosen)
            removed = writer.remove(dict.fromkeys(wanted))
            writer.commit()
        return removed

    def encode(
        self,
        encoder: Encoder | str | os.PathLike[str] | None = None,
        on_commit: Callable[[int, int], None] | None = None,
    ) -> int:
        """Gives a vector to every passage that has none of this encoder; gives how many it encoded.

        Vectors of another encoder are dropped. Interrupted, it goes on where it stopped when it is called again.
        `on_commit` is called with the passages done so far and in all.
        """
        if encoder is not None:
            self._given_encoder, self._encoder = encoder, None
        model = self._loaded()
        if model is None:
            raise CaprError("no encoder is named. Fix: capr encode LIBRARY --encoder FOLDER.")
        done = 0
        with self.index.writing() as writer:
            writer.set_encoder(model.identity)
            writer.commit()
            stats = self.index.stats()
            total = stats.passages - stats.vectors
            while some := self.index.without_vectors(BATCH):
                vectors = model.passages([wording(stored.title, stored.entry) for stored in some])
                writer.set_vectors({stored.number: vector for stored, vector in zip(some, vectors, strict=True)})
                writer.commit()
                done += len(some)
                if on_commit:
                    on_commit(done, total)
        return done

    # --- looking ---

    def document(self, id: str) -> Document:
        """A document, just as it was added."""
        found = self.index.document(id)
        if found is None:
            raise CaprError(f"the library has no document {id!r}. Fix: check the id; capr export lists all.")
        return found

    def documents(self, filters: Filters | Mapping[str, Any] | Iterable[str] | None = None) -> Iterator[Document]:
        """All documents, or those that pass the filters, in the order in which they were added."""
        return self.index.documents(self._filters(filters))

    def stats(self) -> Stats:
        """How much there is."""
        return self.index.stats()

    def verify(self, repair: bool = False, on_progress: Callable[[int, int], None] | None = None) -> Check:
        """Compares everything with everything: texts, spans, vectors, derived indexes.

        Args:
            repair: make a derived index again that is not what it should be.
            on_progress: called with the documents checked so far and in all.
        """
        return verify(self.index, repair, on_progress)

    def compact(self) -> int:
        """Frees the room of what was removed, and gives how many bytes that was."""
        return self.index.compact()

    def suggest(self, typed: str, limit: int = 10) -> list[Any]:
        """What somebody who types may mean; see `Vocabulary.suggest`."""
        return list(self.vocabulary.suggest(typed, limit))

    # --- searching ---

    def search(
        self,
        query: str | Query,
        k: int = 10,
        *,
        filters: Filters | Mapping[str, Any] | Iterable[str] | str | None = None,
        mode: str = "hybrid",
        fusion: str = "reciprocal",
        rerank: bool | None = None,
        group: str | None = None,
        neighbours: int = 0,
    ) -> Results:
        """Finds passages.

        Args:
            query: a question, words with operators ("a phrase", -word, +word, field:value), or an entity and an aspect.
            k: how many, at most.
            filters: what passages have to pass, as `Filters.of` reads it. The k best of those that pass are found.
            mode: `lexical` (words), `dense` (meaning) or `hybrid` (both); without an encoder, hybrid is lexical.
            fusion: of both, by `reciprocal` rank or by normalised `scores`.
            rerank: whether the ranker puts the best candidates in order; if there is one, it does.
            group: `document` or `patient`: one hit for each, with the others in it.
            neighbours: how many passages before and after each hit to show.

        Raises:
            CaprError: an option that does not exist, or a mode without its encoder.
        """
        asked = Query(query) if isinstance(query, str) else query
        _check(k, mode, fusion, group)
        parsed = self._parser.parse(asked)
        passing = self._filters(filters) & self._filters(parsed.filters)
        notices = [*parsed.notices, *self.index.notices()]
        if passing.without:
            passing = self._about(passing, parsed, notices)
        encoder = None if mode == "lexical" else self._encoder_to_search(mode, notices)
        vector = encoder.query(parsed.text) if encoder is not None and parsed.text else None
        depth = max(DEPTH, 2 * k)
        while True:
            rankings: dict[str, Sequence[Found]] = {}
            if mode != "dense":
                rankings["lexical"] = self.index.lexical(parsed.clauses, depth, passing)
            if encoder is not None:
                near = [] if vector is None else self.index.dense(vector, depth, passing, parsed.clauses)
                rankings["dense"] = near
            fused = FUSIONS[fusion](rankings) if len(rankings) > 1 else next(iter(rankings.values()))
            ordered = self._reranked(parsed, fused, rerank)
            groups = self._groups(ordered, group) if group else {}
            exhausted = all(len(ranking) < depth for ranking in rankings.values()) or depth >= LARGEST
            if group is None or exhausted or len(groups) >= k:
                break
            depth *= 4  # all candidates belong to a few groups
        shown = list(groups.items())[:k]
        chosen = self._chosen([f for _, found in shown for f in found] if group else ordered, k if group is None else 0)
        steps = {**rankings, **({"fusion": fused} if len(rankings) > 1 else {})}
        if ordered is not fused:
            steps["rerank"] = ordered
        stages = {name: _stages(ranking, chosen) for name, ranking in steps.items()}
        evidence = Evidence(parsed, self.index)
        made = {n: self._hit(stored, score, evidence, stages, neighbours) for n, (stored, score) in chosen.items()}
        hits = list(made.values())
        if group is not None:
            lists = [(key, [made[f.number] for f in found if f.number in made]) for key, found in shown]
            hits = [replace(found[0], group=key, others=tuple(found[1:])) for key, found in lists if found]
        if not hits:
            notices += self._why_nothing(parsed, passing)
        done = "hybrid" if len(rankings) > 1 else next(iter(rankings))
        return Results(tuple(hits), done, parsed.expanded, tuple(notices))

    def _reranked(self, parsed: Parsed, fused: Sequence[Found], rerank: bool | None) -> Sequence[Found]:
        """The first candidates in the order that the ranker gives them, then the others."""
        if rerank and self._ranker is None:
            raise CaprError("there is no ranker to re-rank with. Fix: name its folder with --ranker.")
        if self._ranker is None or rerank is False or not parsed.text:
            return fused
        some = self.index.passages([found.number for found in fused[:RERANKED]])
        first = [found for found in fused[:RERANKED] if found.number in some]
        texts = [wording(some[found.number].title, some[found.number].entry) for found in first]
        scores = self._ranker.scores(parsed.text, texts)
        best = sorted((Found(f.number, s) for f, s in zip(first, scores, strict=True)), key=lambda f: -f.score)
        lowest = min(scores, default=0.0)
        return best + [Found(f.number, lowest - place) for place, f in enumerate(fused[RERANKED:], 1)]

    def _chosen(self, ordered: Sequence[Found], k: int) -> dict[int, tuple[Stored, float]]:
        """The first k passages with their scores, or all, if k is 0; what was removed meanwhile is left out."""
        chosen: dict[int, tuple[Stored, float]] = {}
        step = k or max(1, len(ordered))
        for begin in range(0, len(ordered), step):
            part = ordered[begin : begin + step]
            known = self.index.passages([found.number for found in part])
            for found in part:
                if found.number in known and (not k or len(chosen) < k):
                    chosen[found.number] = known[found.number], found.score
            if k and len(chosen) >= k:
                break
        return chosen

    def _groups(self, ordered: Sequence[Found], group: str) -> dict[str, list[Found]]:
        """The first passages of each document or patient."""
        keys = self.index.groups([found.number for found in ordered], group)
        groups: dict[str, list[Found]] = {}
        for found in ordered:
            if found.number in keys:
                groups.setdefault(keys[found.number], []).append(found)
        return {key: found[: 1 + OTHERS] for key, found in groups.items()}

    def _hit(
        self,
        stored: Stored,
        score: float,
        evidence: Evidence,
        stages: Mapping[str, Mapping[int, Stage]],
        neighbours: int,
    ) -> Hit:
        entry = stored.entry
        highlights, sentences = evidence.of(entry)
        around = self.index.neighbours(stored.number, neighbours) if neighbours > 0 else ()
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
        )

    def _filters(self, given: Filters | Mapping[str, Any] | Iterable[str] | str | None) -> Filters:
        """Filters with every entity, and every value that has a *, exchanged for what it means."""
        filters = Filters.of(given)
        conditions = []
        for condition in filters.conditions:
            if condition.name == "entity":
                about = Filters(entities=tuple(map(self._code, condition.values)))
                conditions.append(replace(condition, name=ENTITY, values=about.entity_values))
                continue
            values = {value for value in condition.values if "*" not in value}
            for pattern in condition.values - values:
                known = (value for value, _ in self.index.values(condition.name, MANY))
                form = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
                values.update([value for value in known if form.fullmatch(value)] or [pattern])
            conditions.append(replace(condition, values=frozenset(values)))
        return replace(filters, conditions=tuple(conditions))

    def _code(self, entity: str) -> str:
        concept = self.vocabulary.find(entity) or self.vocabulary.by_code(entity)
        if concept is None:
            fix = "use another name of it (capr suggest), or search for it as words"
            raise CaprError(f"the vocabulary has no entity {entity!r}. Fix: {fix}.")
        return concept.code

    def _about(self, filters: Filters, parsed: Parsed, notices: list[str]) -> Filters:
        """Filters on the context of the entities of the query."""
        codes = [concept.code for concept in parsed.entities.values()]
        if not codes:
            what = " or ".join(sorted(filters.without))
            notices.append(f"no entity was recognised in the query, so that nothing was left out as {what}")
        return filters.about(codes)

    def _why_nothing(self, parsed: Parsed, filters: Filters) -> Iterator[str]:
        """Why a search may have found nothing: no words, values of filters that no document has."""
        if not parsed.clauses:
            yield "the query has no words to look for"
        for condition in filters.conditions:
            if condition.exclude or condition.name == ENTITY or self.index.ids(Filters((condition,))):
                continue
            known = ", ".join(value for value, _ in self.index.values(condition.name, KNOWN_VALUES))
            wanted = ", ".join(sorted(condition.values)[:3])
            name = condition.name.removeprefix("#")
            told = f"there are {known}" if known else f"no document has a field {name!r}"
            yield f"no document has {name}={wanted}; {told}"

    # --- models ---

    @cached_property
    def _parser(self) -> Parser:
        gazetteer = annotator(False, self.vocabulary).gazetteer
        return Parser(gazetteer, lambda name: self.index.has(field_name(name)), self._rarity)

    def _rarity(self, words: list[str]) -> list[float]:
        return list(self.index.rarity(self.index.stems(words)))

    @cached_property
    def _ranker(self) -> Ranker | None:
        given = self._given_ranker
        return OnnxRanker(Path(given)) if isinstance(given, str | os.PathLike) else given

    def _loaded(self) -> Encoder | None:
        """The encoder that was given, or the one that the library remembers; None if there is none."""
        if self._encoder is None:
            given, known = self._given_encoder, self.index.encoder()
            if given is None and known is None:
                return None
            if given is None:
                assert known is not None
                given = known.folder
                if not Path(given).is_dir():
                    fix = "put it back, or say where it is with --encoder"
                    raise CaprError(f"the encoder {known.name} of {self.path} is not in {given} any more. Fix: {fix}.")
            self._encoder = OnnxEncoder(given) if isinstance(given, str | os.PathLike) else given
        return self._encoder

    def _checked(self, encoder: Encoder) -> Encoder:
        known = self.index.encoder()
        if known is not None and known.digest != encoder.identity.digest:
            fact = f"the vectors of {self.path} were made by {known.name} ({known.digest[:8]})"
            other = f"{encoder.identity.name} ({encoder.identity.digest[:8]})"
            fix = f"capr encode {self.path} --encoder {encoder.identity.folder}, which makes them again"
            raise CaprError(f"{fact}, and {other} cannot be used with them. Fix: {fix}.")
        return encoder

    def _encoder_to_add(self) -> Encoder | None:
        encoder = self._loaded()
        return encoder and self._checked(encoder)

    def _encoder_to_search(self, mode: str, notices: list[str]) -> Encoder | None:
        fact = ""
        try:
            encoder = self._loaded()
            if encoder is not None and self.index.encoder() is not None:
                return self._checked(encoder)
            fix = f"capr encode {self.path} --encoder FOLDER"
            fact = f"the library has no vectors. Fix: {fix}."
        except CaprError as error:
            fact = str(error)
        if mode == "dense":
            raise CaprError(f"dense search is not possible: {fact}")
        notices.append(f"only words were compared, not meanings: {fact}")
        return None


def _documents(given: Given | Iterable[Given], tell: Callable[[Problem], None]) -> Iterator[Document]:
    """Documents as they are, files and folders read."""
    listed = [given] if isinstance(given, Document | str | os.PathLike) else given
    for one in listed:
        if isinstance(one, Document):
            yield one
        else:
            yield from read(one, on_problem=tell)


def _unusable(document: Document) -> Problem | None:
    if not document.id.strip():
        return Problem("a document has no id", "give it one", str(document.metadata.get("file", "")))
    try:
        said = json.dumps([document.metadata, [a.value for a in document.annotations]], ensure_ascii=False, default=str)
        for part in (document.id, document.title, document.text, said):
            part.encode()
    except UnicodeEncodeError as error:
        fact = f"it holds half of a surrogate pair, U+{ord(error.object[error.start]):04X}"
        return Problem(fact, "write the character itself", record=ascii(document.id))
    return None


def _stages(ranking: Sequence[Found], wanted: Collection[int]) -> dict[int, Stage]:
    """What a ranking says of some passages."""
    return {f.number: Stage(rank, f.score) for rank, f in enumerate(ranking, 1) if f.number in wanted}


def _check(k: int, mode: str, fusion: str, group: str | None) -> None:
    wrong = []
    if not 1 <= k <= LARGEST:
        wrong.append(f"k is {k}. Fix: ask for 1 to {LARGEST:,} passages.")
    for name, value, known in (("mode", mode, MODES), ("fusion", fusion, tuple(FUSIONS)), ("group", group, GROUPS)):
        if value is not None and value not in known:
            wrong.append(f"there is no {name} {value!r}. Fix: use {', '.join(known)}.")
    if wrong:
        raise CaprError(" ".join(wrong))
