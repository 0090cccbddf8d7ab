"""The entity and the aspect that a query asks about, as a discourse model needs them."""

from __future__ import annotations

from collections.abc import Sequence

from capr.annotate import Query
from capr.annotate.aspects import aspect_of, aspects
from capr.annotate.query import heading
from capr.search.parse import WORD, Parsed, stopwords

LONGEST = 5  # words of the name of an aspect
ARTICLES = ("a", "an", "the")


def pair_of(query: Query, parsed: Parsed) -> tuple[str, str]:
    """What was given as a pair; in a text, the first entity that was recognised, and what is asked about it.

    That is an aspect of the table, if it has such a question or its words are among those left, and else these words
    themselves. Without an
    entity that is known, the words that name no aspect are taken for it. A notice tells what was understood.
    """
    if not query.text:
        return query.entity, query.aspect
    entity = next(iter(parsed.entities), "")
    before, _, after = parsed.text.partition(entity) if entity else (parsed.text, "", "")
    left = WORD.findall(before), WORD.findall(after)
    named = _question(parsed.text, entity) or max((_aspect(words) for words in left), key=len)
    others = [word for words in left for word in words if word.lower() not in stopwords()]
    if entity:
        aspect = named or " ".join(others)
    else:
        known = {word.lower() for word in named.split()}
        entity, aspect = " ".join(word for word in others if word.lower() not in known), named
    if entity or aspect:
        told = f"the entity {entity!r} and the aspect {aspect!r}"
        parsed.notices.append(f"the query was understood as {told}; an entity and an aspect that are given are exact")
    return entity, aspect


def _question(text: str, entity: str) -> str:
    """The usual heading of an aspect that has the question, articles aside."""

    def said(words: str) -> list[str]:
        return [word for word in WORD.findall(words.lower()) if word not in ARTICLES]

    asked = said(text)
    for aspect in aspects().values() if entity else ():
        if any(said(question.replace("{}", entity)) == asked for question in aspect.questions):
            return aspect.heading
    return ""


def _aspect(words: Sequence[str]) -> str:
    """The longest run of words that names an aspect; of one that a whole question names, the usual heading."""
    asked = ""
    for length in range(min(LONGEST, len(words)), 0, -1):
        for begin in range(len(words) - length + 1):
            run = words[begin : begin + length]
            if all(word.lower() in stopwords() for word in run):
                continue  # an article, which is also short for something
            if (name := aspect_of(" ".join(run))) in aspects():
                if run[0].lower() not in stopwords() and run[-1].lower() not in stopwords():
                    return " ".join(run)
                asked = asked or heading(name)
    return asked
