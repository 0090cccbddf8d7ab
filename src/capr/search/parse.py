"""The query language: words, phrases, entities, an aspect and filters, as users of search engines write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote

from capr.annotate import Query
from capr.annotate.concept import Concept
from capr.annotate.gazetteer import Gazetteer
from capr.documents import CaprError
from capr.index import Clause, Filters
from capr.index.filters import KNOWN
from capr.segment.aspects import aspect_of, aspects, heading
from capr.text.stopwords import stopwords
from capr.text.words import WORD

# The fields in which words are searched for, with their weights.
# Headings and titles are short, so BM25 already gives a word in them a high score.
EVERYWHERE: Mapping[str, float] = {"text": 1.0, "heading": 0.3, "title": 0.3}
ENTITY: Mapping[str, float] = {"entities": 0.5}
ASPECT: Mapping[str, float] = {"aspect": 3.0, "heading": 1.0}
FIELDS = {"text": "text", "heading": "heading", "title": "title", "entity": "entities"}
TOKEN = re.compile(r'(?<![^\s"])([+-]?)(?:(\w[\w.-]*):(?=["\w]))?(?:"([^"]*)"|([^\s"]+))')
CONDITION = re.compile(r"(\w[\w.-]*)!?=.+")  # a filter as --filter takes it
MOST_NAME_WORDS = 8  # words of a name without quotation marks
MOST = 64  # maximum words of a query to search for
FILTERS = 50  # maximum filters in a query
SHOWN = 12  # maximum other names of an entity to return

Token = tuple[str, str | None, str | None, str]  # the sign, field, phrase and word of a part of a query


@dataclass
class ParsedQuery:
    """The interpretation of a query.

    Attributes:
        text: the query without operators, for a model.
        clauses: the clauses for lexical search.
        filters: the filters in the query.
        entities: the entities recognised in the query, by the words that name them.
        pair: the entity and the aspect of the query, for a discourse model; see `capr.search.query_pair`.
        notices: notices about parts of the query that were left out or may be meant otherwise.
        unknown_entities: names that the query marks as entities and that the vocabulary does not have.
        unquoted_entities: for unknown entities, the known names that they begin, if quotation marks were forgotten.
        unknown_aspect: the aspect of the query if it is none that capr knows.
        unknown_fields: names before a colon that are no fields, with the words after it.
    """

    text: str = ""
    clauses: list[Clause] = field(default_factory=list)
    filters: Filters = field(default_factory=Filters)
    entities: dict[str, Concept] = field(default_factory=dict)
    pair: tuple[str, str] = ("", "")
    notices: list[str] = field(default_factory=list)
    unknown_entities: list[str] = field(default_factory=list)
    unquoted_entities: dict[str, str] = field(default_factory=dict)
    unknown_aspect: str = ""
    unknown_fields: list[tuple[str, str]] = field(default_factory=list)

    @property
    def expanded(self) -> dict[str, tuple[str, ...]]:
        """The other names of the entities."""
        return {
            words: tuple(name for name in concept.names if name.lower() != words.lower())[:SHOWN]
            for words, concept in self.entities.items()
        }


class Parser:
    """Interprets queries with one vocabulary.

    Args:
        gazetteer: finds entities.
        is_field: returns whether any document has a metadata field of that name.
        rarity: returns the weights of words, to choose among very many.
    """

    def __init__(
        self, gazetteer: Gazetteer, is_field: Callable[[str], bool], rarity: Callable[[list[str]], list[float]]
    ) -> None:
        self._gazetteer, self._is_field, self._rarity = gazetteer, is_field, rarity

    def parse(self, query: Query) -> ParsedQuery:
        """Interpret a query. No text is an error; notices name the parts that are left out."""
        parsed = ParsedQuery()
        if query.text:
            self._text(query.text, parsed)
        else:
            self._pair(query, parsed)
        return parsed

    def _pair(self, query: Query, parsed: ParsedQuery) -> None:
        parsed.text = query.wording
        if query.entity:
            concept = self._gazetteer.vocabulary.find(query.entity)
            if concept is not None:
                parsed.entities[query.entity] = concept
                parsed.clauses.append(Clause(concept.code, ENTITY))
            else:
                parsed.unknown_entities.append(query.entity)
            parsed.clauses += [Clause(word, EVERYWHERE) for word in self._words(query.entity, parsed)]
        if query.aspect:
            forms = (query.aspect, f"{query.aspect}s", query.aspect.removesuffix("s"))
            name = next((aspect_of(form) for form in forms if aspect_of(form) in aspects()), aspect_of(query.aspect))
            parsed.clauses.append(Clause(name, ASPECT))
            parsed.unknown_aspect = "" if name in aspects() else name
            words = heading(name) if name in aspects() else query.aspect
            parsed.clauses += [Clause(word, EVERYWHERE) for word in self._words(words, parsed)]

    def _text(self, text: str, parsed: ParsedQuery) -> None:
        plain: list[str] = []
        tokens = list(_tokens(text))
        for number, (sign, name, phrase, word) in enumerate(tokens):
            words = phrase or word
            occur = {"+": "must", "-": "not"}.get(sign, "should")
            if name and (field := FIELDS.get(name.lower())):
                self._in_field(field, words, "not" if occur == "not" else "must", parsed)
                if words in parsed.unknown_entities and phrase is None:
                    self._unquoted(words, tokens[number + 1 :], parsed)
            elif name and self._is_filter(name):
                self._filter(name, words, occur == "not", parsed)
            elif phrase is not None and not name:
                if WORD.search(phrase):
                    parsed.clauses.append(Clause(phrase, EVERYWHERE, "must" if occur == "should" else occur))
                    plain += [phrase] if occur != "not" else []
            else:
                if (condition := CONDITION.fullmatch(words)) and not name and self._is_filter(condition[1]):
                    fact = f"capr searched for {words} as plain words"
                    parsed.notices.append(f"{fact}. Did you mean --filter {quote(words)}?")
                if name:
                    parsed.unknown_fields.append((name, words if phrase is None else f'"{phrase}"'))
                    words = f"{name}:{words}"
                if occur == "should":
                    plain.append(words)
                else:
                    parsed.clauses += [Clause(part, EVERYWHERE, occur) for part in WORD.findall(words)]
                    plain += [words] if occur == "must" else []
        parsed.text = " ".join(plain)
        for match in self._gazetteer.find(parsed.text):
            name = match.span.of(parsed.text)
            if match.concept.code not in {concept.code for concept in parsed.entities.values()}:
                parsed.entities[name] = match.concept
                parsed.clauses.append(Clause(match.concept.code, ENTITY))
        parsed.clauses += [Clause(word, EVERYWHERE) for word in self._words(parsed.text, parsed)]

    def _is_filter(self, name: str) -> bool:
        return name.lower() in KNOWN or self._is_field(name)

    def _filter(self, name: str, value: str, exclude: bool, parsed: ParsedQuery) -> None:
        try:
            if value.startswith("@"):
                raise CaprError("@FILE works only in --filter")
            if len(parsed.filters.conditions) >= FILTERS:
                raise CaprError(f"a query has at most {FILTERS} filters")
            parsed.filters &= Filters.of([f"{name}{'!' if exclude else ''}={value}"])
        except CaprError as error:
            parsed.notices.append(f"{name}:{value} was left out: {error}")

    def _in_field(self, field: str, words: str, occur: str, parsed: ParsedQuery) -> None:
        concept = self._gazetteer.vocabulary.find(words) if field == "entities" else None
        if concept is not None:
            if occur != "not":
                parsed.entities[words] = concept
            parsed.clauses.append(Clause(concept.code, {"entities": 1.0}, occur))
        else:
            if field == "entities":
                parsed.unknown_entities.append(words)
            parsed.clauses.append(Clause(words, EVERYWHERE if field == "entities" else {field: 1.0}, occur))

    def _unquoted(self, entity: str, following: list[Token], parsed: ParsedQuery) -> None:
        """Note the longest name of an entity that an unknown one begins and the words after it continue."""
        name = entity
        for sign, field_name, phrase, word in following[: MOST_NAME_WORDS - 1]:
            if sign or field_name or phrase is not None:
                break
            name = f"{name} {word}"
            if self._gazetteer.vocabulary.find(name) is not None:
                parsed.unquoted_entities[entity] = name.rstrip(".,;:?!")

    def _words(self, text: str, parsed: ParsedQuery) -> list[str]:
        """Return the words of a text without stop words and repetitions; of very many words, the rarest."""
        all_words = list(dict.fromkeys(WORD.findall(text.lower())))
        words = [word for word in all_words if word not in stopwords()] or all_words
        if len(words) <= MOST:
            return words
        parsed.notices.append(f"the query has {len(words):,} words; the search uses the {MOST} rarest")
        rarity = dict(zip(words, self._rarity(words), strict=True))
        return sorted(words, key=lambda word: -rarity[word])[:MOST]


def _tokens(text: str) -> Iterator[Token]:
    """Yield the sign, field, phrase and word of each part of a query that has letters or digits.

    An unpaired quotation mark counts as a space.
    """
    if text.count('"') % 2:
        before, _, after = text.rpartition('"')
        text = f"{before} {after}"
    for match in TOKEN.finditer(text):
        sign, name, phrase, word = match.groups()
        if WORD.search(phrase if phrase is not None else word):
            yield sign, name, phrase, word or ""
