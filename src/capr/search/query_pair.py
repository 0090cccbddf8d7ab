"""The entity and the aspect that a query asks about, as a discourse model needs them."""

from __future__ import annotations

from collections.abc import Sequence

from capr.annotate import Query
from capr.search.parse import ParsedQuery
from capr.segment.aspects import aspect_of, aspects, heading
from capr.text.stopwords import stopwords
from capr.text.words import WORD

LONGEST = 5  # maximum words of the name of an aspect
ARTICLES = ("a", "an", "the")


def pair_of(query: Query, parsed: ParsedQuery) -> tuple[str, str]:
    """Return the entity and the aspect of a query.

    A pair is returned unchanged. In a text, the entity is the first one that the vocabulary knows. The aspect is the
    known aspect that the whole question or the other words name; otherwise, it is the other words themselves. Without a
    known entity, the words that name no aspect are the entity. A notice states the result.
    """
    if not query.text:
        return query.entity, query.aspect
    entity = next(iter(parsed.entities), "")
    before, _, after = parsed.text.partition(entity) if entity else (parsed.text, "", "")
    rest = WORD.findall(before), WORD.findall(after)
    known_aspect = _aspect_of_question(parsed.text, entity) or max((_aspect_in(words) for words in rest), key=len)
    content_words = [word for words in rest for word in words if word.lower() not in stopwords()]
    if entity:
        aspect = known_aspect or " ".join(content_words)
    else:
        aspect_words = {word.lower() for word in known_aspect.split()}
        entity = " ".join(word for word in content_words if word.lower() not in aspect_words)
        aspect = known_aspect
    if entity or aspect:
        pair = f"the entity {entity!r} and the aspect {aspect!r}"
        fix = "to choose them yourself, search for an entity and an aspect"
        parsed.notices.append(f"the query was understood as {pair}; {fix}")
    return entity, aspect


def _aspect_of_question(text: str, entity: str) -> str:
    """Return the heading of the aspect that has the text as one of its questions, articles aside; else ""."""

    def words_of(question: str) -> list[str]:
        return [word for word in WORD.findall(question.lower()) if word not in ARTICLES]

    words = words_of(text)
    for aspect in aspects().values() if entity else ():
        if any(words_of(question.replace("{}", entity)) == words for question in aspect.questions):
            return aspect.heading
    return ""


def _aspect_in(words: Sequence[str]) -> str:
    """Return the longest run of words that names an aspect; else "".

    If only a run that begins or ends with a stop word names an aspect, return the heading of that aspect.
    """
    aspect_heading = ""
    for length in range(min(LONGEST, len(words)), 0, -1):
        for begin in range(len(words) - length + 1):
            run = words[begin : begin + length]
            if all(word.lower() in stopwords() for word in run):
                continue  # an article that is also an abbreviation
            if (name := aspect_of(" ".join(run))) in aspects():
                if run[0].lower() not in stopwords() and run[-1].lower() not in stopwords():
                    return " ".join(run)
                aspect_heading = aspect_heading or heading(name)
    return aspect_heading
