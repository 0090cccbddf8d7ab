"""What a query means: words, phrases, entities, an aspect, and filters, as a user of a search engine writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from capr.annotate import Query
from capr.annotate.aspects import aspect_of, aspects
from capr.annotate.concept import Concept
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.query import heading
from capr.documents import CaprError
from capr.index import Clause, Filters
from capr.index.filters import KNOWN

# Where words are looked for, and how much it counts to find them there.
# A heading or title is so short that BM25 takes a word in it for much already.
EVERYWHERE: Mapping[str, float] = {"text": 1.0, "heading": 0.3, "title": 0.3}
ENTITY: Mapping[str, float] = {"entities": 0.5}
ASPECT: Mapping[str, float] = {"aspect": 3.0, "heading": 1.0}
FIELDS = {"text": "text", "heading": "heading", "title": "title", "entity": "entities"}
TOKEN = re.compile(r'(?<![^\s"])([+-]?)(?:(\w[\w.-]*):(?=["\w]))?(?:"([^"]*)"|([^\s"]+))')
WORD = re.compile(r"[^\W_]+")
MOST = 64  # words that are looked for
FILTERS = 50  # that may stand in a query
SHOWN = 12  # other names of an entity that are told


@dataclass
class Parsed:
    """A query as it is searched.

    Attributes:
        text: for a model, without operators.
        clauses: for the index of words.
        filters: that stand in the query.
        entities: recognised in it, by the words for them.
        pair: the entity and the aspect that are asked about, for a discourse model; see `capr.search.pair`.
        notices: what was left out.
    """

    text: str = ""
    clauses: list[Clause] = field(default_factory=list)
    filters: Filters = field(default_factory=Filters)
    entities: dict[str, Concept] = field(default_factory=dict)
    pair: tuple[str, str] = ("", "")
    notices: list[str] = field(default_factory=list)

    @property
    def expanded(self) -> dict[str, tuple[str, ...]]:
        """The other names of the entities."""
        return {
            words: tuple(name for name in concept.names if name.lower() != words.lower())[:SHOWN]
            for words, concept in self.entities.items()
        }


@cache
def stopwords() -> frozenset[str]:
    """Words that tell nothing about a passage."""
    return frozenset(files("capr.search").joinpath("stopwords.txt").read_text("utf-8").split())


class Parser:
    """Understands queries with one vocabulary.

    Args:
        gazetteer: finds entities.
        is_field: whether documents have metadata of that name.
        rarity: how much words tell, to choose among very many.
    """

    def __init__(
        self, gazetteer: Gazetteer, is_field: Callable[[str], bool], rarity: Callable[[list[str]], list[float]]
    ) -> None:
        self._gazetteer, self._is_field, self._rarity = gazetteer, is_field, rarity

    def parse(self, query: Query) -> Parsed:
        """What a query means; nothing that a user can write is an error."""
        parsed = Parsed()
        if query.text:
            self._text(query.text, parsed)
        else:
            self._pair(query, parsed)
        return parsed

    def _pair(self, query: Query, parsed: Parsed) -> None:
        parsed.text = query.wording
        if query.entity:
            concept = self._gazetteer.vocabulary.find(query.entity)
            if concept is not None:
                parsed.entities[query.entity] = concept
                parsed.clauses.append(Clause(concept.code, ENTITY))
            parsed.clauses += [Clause(word, EVERYWHERE) for word in self._words(query.entity, parsed)]
        if query.aspect:
            forms = (query.aspect, f"{query.aspect}s", query.aspect.removesuffix("s"))
            name = next((aspect_of(form) for form in forms if aspect_of(form) in aspects()), aspect_of(query.aspect))
            parsed.clauses.append(Clause(name, ASPECT))
            words = heading(name) if name in aspects() else query.aspect
            parsed.clauses += [Clause(word, EVERYWHERE) for word in self._words(words, parsed)]

    def _text(self, text: str, parsed: Parsed) -> None:
        plain: list[str] = []
        for sign, name, phrase, word in _tokens(text):
            words = phrase or word
            occur = {"+": "must", "-": "not"}.get(sign, "should")
            if name and (field := FIELDS.get(name.lower())):
                self._in_field(field, words, "not" if occur == "not" else "must", parsed)
            elif name and (name.lower() in KNOWN or self._is_field(name)):
                self._filter(name, words, occur == "not", parsed)
            elif phrase is not None and not name:
                if WORD.search(phrase):
                    parsed.clauses.append(Clause(phrase, EVERYWHERE, "must" if occur == "should" else occur))
                    plain += [phrase] if occur != "not" else []
            else:
                words = f"{name}:{words}" if name else words
                if occur == "should":
                    plain.append(words)
                else:
                    parsed.clauses += [Clause(part, EVERYWHERE, occur) for part in WORD.findall(words)]
                    plain += [words] if occur == "must" else []
        parsed.text = " ".join(plain)
        for found in self._gazetteer.find(parsed.text):
            name = found.span.of(parsed.text)
            if found.concept.code not in {concept.code for concept in parsed.entities.values()}:
                parsed.entities[name] = found.concept
                parsed.clauses.append(Clause(found.concept.code, ENTITY))
        parsed.clauses += [Clause(word, EVERYWHERE) for word in self._words(parsed.text, parsed)]

    def _filter(self, name: str, value: str, exclude: bool, parsed: Parsed) -> None:
        try:
            if value.startswith("@"):
                raise CaprError("files are named with --filter alone")
            if len(parsed.filters.conditions) >= FILTERS:
                raise CaprError(f"a query has at most {FILTERS} filters")
            parsed.filters &= Filters.of([f"{name}{'!' if exclude else ''}={value}"])
        except CaprError as error:
            parsed.notices.append(f"{name}:{value} was left out: {error}")

    def _in_field(self, field: str, words: str, occur: str, parsed: Parsed) -> None:
        concept = self._gazetteer.vocabulary.find(words) if field == "entities" else None
        if concept is not None:
            if occur != "not":
                parsed.entities[words] = concept
            parsed.clauses.append(Clause(concept.code, {"entities": 1.0}, occur))
        else:
            parsed.clauses.append(Clause(words, EVERYWHERE if field == "entities" else {field: 1.0}, occur))

    def _words(self, text: str, parsed: Parsed) -> list[str]:
        """The words that tell something, each once; the rarest, if there are very many."""
        every = list(dict.fromkeys(WORD.findall(text.lower())))
        words = [word for word in every if word not in stopwords()] or every
        if len(words) <= MOST:
            return words
        parsed.notices.append(f"the query has {len(words):,} words; the {MOST} rarest were looked for")
        told = dict(zip(words, self._rarity(words), strict=True))
        return sorted(words, key=lambda word: -told[word])[:MOST]


def _tokens(text: str) -> Iterator[tuple[str, str | None, str | None, str]]:
    """Sign, field, phrase and word of each part of a query that has letters or digits.

    A quotation mark without its other half is nothing.
    """
    if text.count('"') % 2:
        before, _, after = text.rpartition('"')
        text = f"{before} {after}"
    for match in TOKEN.finditer(text):
        sign, name, phrase, word = match.groups()
        if WORD.search(phrase if phrase is not None else word):
            yield sign, name, phrase, word or ""
