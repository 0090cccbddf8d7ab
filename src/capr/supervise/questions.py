"""Questions and answers about notes, made from the notes themselves: templates over the facts that are found in them.

emrQA made its questions from expert annotations in the same way (Pampari et al. 2018); here `annotate` and a few
patterns take the experts' place (`capr.supervise.facts`). questions.tsv has the wordings. Others come from plain
clauses, each in its own words (`capr.supervise.clauses`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from capr.annotate.mentions import Annotator, annotator
from capr.documents import CaprError, Document, Span
from capr.supervise.clauses import clause_questions, plainly
from capr.supervise.facts import Fact, Note, facts, mentioned, undosed
from capr.supervise.reports import Asked, Report

PER_NOTE = 20
UNANSWERABLE = 0.3
OTHER_NAME = 0.25  # how often a subject is named otherwise than in the note
CLAUSES = 0.5
CLAUSE = "clause: "  # before the kind of a question that a clause gave; its subject is the whole question
SHARES = {"age": 0.3}  # of what nearly every note says
TRIES = 20  # for each unanswerable question
SIGNS = re.compile(r"[\s.,;:*-]+")
MALE, FEMALE = re.compile(r"\b(?:he|his|him|Mr|male|man)\b"), re.compile(r"\b(?:she|her|hers|Mrs|Ms|female|woman)\b")
WORD = re.compile(r"[a-z0-9]{4,}")


class Wording(NamedTuple):
    """A row of questions.tsv.

    Attributes:
        all: whether every fact of the kind answers, so that they may differ; otherwise all must say the same.
        unless: what a note must not speak of for the question to be surely unanswerable; None if that is the subject.
        words: several ways to ask.
    """

    all: bool
    unless: re.Pattern[str] | None
    words: tuple[str, ...]


@cache
def wordings() -> Mapping[str, Wording]:
    """The table questions.tsv."""
    found = {}
    lines = files("capr.supervise").joinpath("questions.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        columns = line.split("\t")
        if len(columns) != 4 or columns[1] not in ("one", "all") or columns[0] in found:
            raise CaprError(f"questions.tsv, line {number}: {line[:60]!r} is not a new kind with its wordings.")
        kind, many, unless, words = columns
        pattern = re.compile(unless, re.IGNORECASE) if unless else None
        found[kind] = Wording(many == "all", pattern, tuple(words.split("|")))
    return found


@dataclass(slots=True)
class Source:
    """A note, what can be asked of it, and what it says nothing about."""

    document: Document
    lower: str
    keys: frozenset[str]
    asked: list[tuple[Fact, tuple[Span, ...]]] = field(default_factory=list)
    undosed: list[Fact] = field(default_factory=list)
    clauses: list[tuple[Fact, tuple[Span, ...]]] = field(default_factory=list)

    @classmethod
    def of(cls, document: Document, finder: Annotator, draw: random.Random | None = None) -> Source:
        """The source of a document; without clauses if there is nothing to draw their wordings by."""
        note = Note.of(document, finder)
        missing = [Fact("dose", name, key, Span(0, 0)) for name, key in undosed(note)]
        keys = frozenset(note.key(mention) for mention in note.mentions)
        told = list(_told(note, finder, draw)) if draw else []
        return cls(document, note.lower, keys, list(answered(note, facts(note))), missing, told)


def _told(note: Note, finder: Annotator, draw: random.Random) -> Iterator[tuple[Fact, tuple[Span, ...]]]:
    """What clauses answer, as facts whose key is the first drug or disease of the question, if it names one."""
    for kind, words, answer in clause_questions(note, draw):
        asked = Note.of(Document("question", words), finder)
        named = [mention for mention in asked.mentions if mention.kind in ("drug", "disease") and mention.concept]
        key, also = (asked.key(named[0]), asked.name(named[0])) if named else ("", "")
        yield Fact(f"{CLAUSE}{kind}", words, key, answer, also), (answer,)


def answered(note: Note, found: Iterable[Fact]) -> Iterator[tuple[Fact, tuple[Span, ...]]]:
    """The facts that one question can ask for, with all places that answer it.

    A question has to have one answer: where the note says different things (two doses of a drug) it is left out.
    """
    groups: dict[tuple[str, str], list[Fact]] = {}
    for fact in found:
        groups.setdefault((fact.kind, fact.key), []).append(fact)
    for (kind, _), group in groups.items():
        sure = [fact for fact in group if fact.sure]
        said = {SIGNS.sub("", fact.answer.of(note.text).lower()) for fact in group}
        if sure and (len(said) == 1 or wordings()[kind].all) and not _ambiguous(sure[0], groups):
            yield sure[0], tuple(dict.fromkeys(sorted(fact.answer for fact in sure)))


def _ambiguous(fact: Fact, groups: Mapping[tuple[str, str], object]) -> bool:
    """Whether the subject may also mean another of the same kind: `CT` where there is a `chest CT`."""
    words = set(fact.subject.lower().split())
    return fact.kind == "shown" and any(
        kind == "shown" and key != fact.key and words <= set(key.lower().split()) for kind, key in groups
    )


def questions(
    documents: Iterable[Document],
    seed: int = 0,
    per_note: int = PER_NOTE,
    unanswerable: float = UNANSWERABLE,
    finder: Annotator | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    clauses: float = CLAUSES,
) -> Iterator[Report]:
    """Reports of notes with questions about them; notes of which nothing can be asked are left out.

    Unanswerable questions are those of other notes, about a drug, problem or test of which this note does not speak at
    all, and about the dose of drugs that it names in sentences without any number.

    Args:
        documents: notes. All are read before the first report comes, since notes lend each other questions.
        seed: the same seed and notes give the same questions.
        per_note: questions about one note, at most; 0 for all that can be asked.
        unanswerable: the share of questions that the note does not answer.
        finder: of mentions; the vocabulary that ships if None.
        progress: called with how many reports are done, and how many there are.
        clauses: the share of the answered questions that come from clauses, as far as there are so many; 0 for none.
    """
    if not 0 <= unanswerable < 1:
        raise CaprError(f"the share of unanswerable questions is {unanswerable}. Fix: give it from 0 to below 1.")
    finder = finder or annotator(with_tagger=False)
    if not 0 <= clauses <= 1:
        raise CaprError(f"the share of questions from clauses is {clauses}. Fix: give it from 0 to 1.")
    drawn = (
        Source.of(document, finder, random.Random(f"{seed} clauses {document.id}") if clauses else None)
        for document in documents
    )
    sources = [source for source in drawn if source.asked or source.clauses]
    lent: dict[str, list[Fact]] = {}
    for source in sources:
        for fact, _ in [*source.asked, *source.clauses]:
            if fact.key:
                lent.setdefault(fact.kind, []).append(fact)
    for number, source in enumerate(sources, 1):
        yield _report(source, lent, random.Random(f"{seed} {source.document.id}"), per_note, unanswerable, clauses)
        progress(number, len(sources))


def _report(
    source: Source,
    lent: Mapping[str, Sequence[Fact]],
    draw: random.Random,
    per_note: int,
    share: float,
    clauses: float,
) -> Report:
    both = len(source.asked) + len(source.clauses)
    wanted = max(1, round(per_note * (1 - share)) if per_note else both)
    known = [one for one in source.asked if draw.random() < SHARES.get(one[0].kind, 1)]
    told = min(len(source.clauses), max(round(wanted * clauses), wanted - len(known)))
    chosen = _spread(known, wanted - told, draw) + _spread(source.clauses, told, draw)
    none: tuple[Span, ...] = ()
    chosen += [(fact, none) for fact in _foreign(source, lent, draw, round(len(chosen) * share / (1 - share)))]
    draw.shuffle(chosen)
    asked = [
        Asked(f"{source.document.id}/{number}", _worded(fact, source, draw), spans)
        for number, (fact, spans) in enumerate(chosen, 1)
    ]
    return Report(source.document, tuple({question.text: question for question in asked}.values()))


def _spread(
    asked: Sequence[tuple[Fact, tuple[Span, ...]]], wanted: int, draw: random.Random
) -> list[tuple[Fact, tuple[Span, ...]]]:
    """So many, one kind after the other, so that a long list of drugs does not crowd out the rest."""
    by_kind: dict[str, list[tuple[Fact, tuple[Span, ...]]]] = {}
    for item in draw.sample(asked, len(asked)):
        by_kind.setdefault(item[0].kind, []).append(item)
    found: list[tuple[Fact, tuple[Span, ...]]] = []
    while len(found) < min(wanted, len(asked)):
        found += [items.pop() for items in by_kind.values() if items]
    return found[:wanted]


def _foreign(source: Source, lent: Mapping[str, Sequence[Fact]], draw: random.Random, wanted: int) -> list[Fact]:
    """Facts that other notes have, and of which this one says nothing."""
    found = dict.fromkeys(draw.sample(source.undosed, min(len(source.undosed), wanted // 3)))
    kinds = sorted(kind for kind in lent if kind not in ("absent", "family", "relative"))
    for _ in range(TRIES * wanted):
        if len(found) >= wanted:
            break
        fact = draw.choice(lent[draw.choice(kinds)])
        if is_foreign(fact, source.document.text, source.lower, source.keys):
            found[fact] = None
    return list(found)


def is_foreign(fact: Fact, text: str, lower: str, keys: frozenset[str]) -> bool:
    """Whether a note does not speak of a fact's subject, in none of its words and under none of its names.

    Args:
        fact: of another note.
        text: of the note; of some tests (K, Na), capital letters are a part of the name.
        lower: the text of the note in lower case, with single blanks.
        keys: what the note mentions.
    """
    if fact.kind.startswith(CLAUSE):
        return fact.key not in keys and not any(
            word in lower for word in WORD.findall(fact.also.lower()) or [fact.also]
        )
    if fact.kind == "value":
        return mentioned()[fact.key].search(text) is None and mentioned()[fact.key].search(lower) is None
    if not fact.subject:
        unless = wordings()[fact.kind].unless
        return unless is not None and unless.search(lower) is None
    words = WORD.findall(f"{fact.subject} {fact.also}".lower()) or [fact.subject.lower()]
    return fact.key not in keys and not any(word in lower for word in words)


def _worded(fact: Fact, source: Source, draw: random.Random) -> str:
    """A question in words, about `the patient`, or about him or her where the note shows which."""
    if fact.kind.startswith(CLAUSE):
        return fact.subject
    male, female = len(MALE.findall(source.document.text)), len(FEMALE.findall(source.document.text))
    known = max(male, female) > 3 * min(male, female) and draw.random() < 0.5
    who, whose, whom = ("he", "his", "him") if male > female else ("she", "her", "her")
    if not known:
        who, whose, whom = "the patient", "the patient's", "the patient"
    subject = fact.also if fact.also and draw.random() < OTHER_NAME else fact.subject
    words = draw.choice(wordings()[fact.kind].words)
    owner = {"who_him": whom, "whose_own": "his" if who == "he" else "hers" if who == "she" else "the patient"}
    return plainly(words.format(subject=subject, who=who, whose=whose, **owner), draw)
