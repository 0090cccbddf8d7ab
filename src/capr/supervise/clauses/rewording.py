"""Rewording: synonyms of the vocabulary, classes of drugs and lay words in place of the words of the note."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from capr.documents import CaprError, Span
from capr.supervise.facts.note import Note

NAME_SHARE, LAY_SHARE = 0.35, 0.5  # the shares of names and of clinical words to replace
NAME = re.compile(r"[a-z]{4,}(?:[ -][a-z]{3,}){0,2}|[A-Z]{3,5}")
NOT_NOUN = re.compile(
    r"(?:\?|(?:was|were|is|are|had|has|have|did|be|been|given|started|stopped|held|and|or|for|in|on|"
    r"at|to|with|by|from|of|after|"
    r"before|during|because|\w+ed|when)\b)"
)
DETERMINED_BEFORE = re.compile(
    r"\b(?:the|an?|his|her|any|no|which|this|of|oral|intravenous|iv|mg|dose|daily|\w+ed|\w+ing)\s+$", re.IGNORECASE
)
ARTICLE_BEFORE = re.compile(
    r"\b(?:any|the|an?|his|her|no|of|\w+(?:al|ic|ive|ous|ere|ild|ute|ing|ed))\s+$", re.IGNORECASE
)
VOWEL = r"[aio]|e(?!u)|u(?:n(?!i)|l|p|r[gi])"  # sounds that take `an`: an ulcer, but a unit
BROAD_TERMS = frozenset(
    "tumor tumour cancer lesion mass cyst infection disease syndrome pain surgery steroid antibiotic "
    "antibiotics".split()
)


@cache
def drug_classes() -> Mapping[str, tuple[str, ...]]:
    """Read classes.tsv: for each drug the names of its class."""
    table = {}
    for number, line in enumerate(files(__package__).joinpath("classes.tsv").read_text("utf-8").splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) != 2 or not all(columns):
            raise CaprError(f"classes.tsv, line {number}: {line[:60]!r} does not name a class and its drugs.")
        table.update({drug: tuple(columns[0].split("|")) for drug in columns[1].split("|")})
    return table


@cache
def lay_words() -> tuple[Mapping[str, tuple[str, ...]], re.Pattern[str]]:
    """Read lay.tsv: lay words by clinical term, and a pattern that finds the terms."""
    table = {}
    for number, line in enumerate(files(__package__).joinpath("lay.tsv").read_text("utf-8").splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) != 2 or not all(columns) or columns[0] in table:
            raise CaprError(f"lay.tsv, line {number}: {line[:60]!r} is not a new term with lay words.")
        table[columns[0]] = tuple(columns[1].split("|"))
    names = "|".join(re.escape(name) for name in sorted(table, key=len, reverse=True))
    return table, re.compile(rf"(?<![\w-])(?:{names})(?![\w-])", re.IGNORECASE)


def reword(note: Note, words: str, answer: Span, rng: random.Random) -> str:
    """Replace some names in a question; keep the question if that would give the answer away."""
    changed = use_lay_words(_fix_articles(words, _replace_names(note, _replace_drugs(note, words, rng), rng)), rng)
    answer_text = answer.of(note.text).lower()
    return words if answer_text in changed.lower() or len(changed.split()) > 22 else changed


def use_lay_words(words: str, rng: random.Random) -> str:
    """Replace some clinical words of a question with lay words."""
    table, pattern = lay_words()

    def replace_term(match: re.Match[str]) -> str:
        if rng.random() >= LAY_SHARE:
            return match[0]
        lay = rng.choice(table[match[0].lower()])
        if re.search(r"\w\s+$", match.string[: match.start()]) and ARTICLE_BEFORE.search(match.string[: match.start()]):
            lay = re.sub(r"^an?\s+", "", lay)
        return lay[0].upper() + lay[1:] if match.start() == 0 else lay

    return _fix_articles(words, pattern.sub(replace_term, words))


def _fix_articles(words: str, changed: str) -> str:
    """Choose between `a` and `an` by the words that now follow."""
    if changed == words:
        return words
    return re.sub(rf"\b([Aa])n?\s+(?=({VOWEL})|[a-z])", lambda match: f"{match[1]}{'n' if match[2] else ''} ", changed)


def _replace_drugs(note: Note, words: str, rng: random.Random) -> str:
    drug_names = {note.document[mention.span].lower() for mention in note.mentions if mention.kind == "drug"}
    for name in sorted(drug_names & drug_classes().keys()):
        match = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words, re.IGNORECASE)
        if not match or rng.random() >= NAME_SHARE:
            continue
        drug_class = rng.choice(drug_classes()[name])
        is_unique = not any(
            drug_classes()[other] is not None
            and other != name
            and set(drug_classes()[other]) & set(drug_classes()[name])
            for other in drug_names & drug_classes().keys()
        )
        if not is_unique or re.match(r"\s*\d", words[match.end() :]) or drug_class.lower() in note.lower_text:
            continue  # the class could mean another drug of the note
        before, after = words[: match.start()], words[match.end() :].lstrip()
        article = "the " if NOT_NOUN.match(after) and not DETERMINED_BEFORE.search(before) else ""
        words = f"{before}{article}{drug_class}{words[match.end() :]}"
    return words


def _replace_names(note: Note, words: str, rng: random.Random) -> str:
    for mention in note.mentions:
        name = note.document[mention.span]
        if (
            mention.concept is None
            or mention.kind == "symptom"
            or name.lower() in BROAD_TERMS
            or name.lower() not in words.lower()
        ):
            continue
        synonyms = [
            synonym
            for synonym in mention.concept.names[: 1 if mention.kind == "drug" else 2]
            if NAME.fullmatch(synonym) and synonym.lower() != name.lower() and not synonym.endswith("s")
        ]
        match = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words)
        if match and synonyms and name[-1:] != "s" and rng.random() < NAME_SHARE:
            words = f"{words[: match.start()]}{rng.choice(synonyms)}{words[match.end() :]}"
    return words
