"""The questions of a note: all that its clauses answer, except those with rival answers elsewhere in the note."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from capr.documents import Span
from capr.supervise.clauses.grammar import find_clauses
from capr.supervise.clauses.inversion import ClauseQuestion
from capr.supervise.clauses.patterns import ask_fixed_patterns
from capr.supervise.clauses.questions import ask_about
from capr.supervise.clauses.rewording import reword
from capr.supervise.facts.note import Note, trim_span

MALE, FEMALE = (
    re.compile(r"\b(?:he|his|him|Mr|male|man|boy)\b"),
    re.compile(r"\b(?:she|her|hers|Mrs|Ms|female|woman|girl)\b"),
)
SEVERAL_PATIENTS = re.compile(
    r"\b(?:[Cc]ase|[Pp]atient)\s+(?:no\.?\s*|#\s*)?(?:2|two|B|II)\b|\b(?:[Bb]oth|[Tt]wo|[Tt]hree|"
    r"[Ff]our|[Ff]ive|[Ss]ix|[Ss]even|[Ee]ight|[Tt]en|\d+)\s+"
    r"(?:[\w-]+\s+){0,3}(?:patients|cases|siblings|sisters|brothers|children|infants|women|men|males|females|"
    r"twins)\b|\b[Ss]econd (?:patient|case)\b"
)
LABEL = re.compile(r"[\s•*–-]*(?:[A-Z][\w/ -]{2,40}:\s+)?(?=\S)")
WORD = re.compile(r"\w+")
FUNCTION_WORDS = frozenset(
    "a an the of in on at to for with by from and or was were is are did does do had has have be "
    "been any there who his her he she "
    "patient what why when where which how long many often not for happened".split()
)
VAGUE_WORD = re.compile(
    r"\b(?:it|its|this|these|those|they|them|their|which|such|latter|former|we|our|us|i|my|you|your|"
    r"above|below|same|respectively|fig|figure|table|et)\b",
    re.IGNORECASE,
)
PRONOUNS = frozenset("he she it they them him her this that these those we us one which who no yes".split())
NOT_LAST_WORDS = frozenset(
    "of in on at by for with without to from and or the a an his her was were is as that than into be any not".split()
)
VERBLESS = re.compile(r"^(?:What|Why|When|Where) (?:did|does|was|is|were) \{who\} ?\??$")


KIND_SHARES = {"how old": 0.3}  # the share of these questions to keep, since nearly every report answers them


class QuestionCandidate(NamedTuple):
    """A possible question about a note.

    Attributes:
        kind: its question word or form.
        words: the question.
        answer: the span that answers.
        sentence: the index of the sentence in the note.
        content: the content words of the question.
    """

    kind: str
    words: str
    answer: Span
    sentence: int
    content: frozenset[str]


def clause_questions(note: Note, rng: random.Random) -> Iterator[tuple[str, str, Span]]:
    """Yield questions that clauses of a note answer: kind, words, and the answer's span in the note.

    Notes about several patients give no questions, since a question could mean any of them.

    Args:
        note: a note with mentions; questions use other names for some of them.
        rng: draws wordings.
    """
    if SEVERAL_PATIENTS.search(note.text):
        return
    male, female = len(MALE.findall(note.text)), len(FEMALE.findall(note.text))
    pronoun = "he" if male > 2 * female else "she" if female > 2 * male else ""
    candidates = [candidate for candidate in find_candidates(note) if _pronouns_fit(candidate, pronoun)]
    groups: dict[tuple[int, str], list[QuestionCandidate]] = {}
    for candidate in candidates:
        if not any(_is_rival(candidate, other) for other in candidates):
            groups.setdefault((candidate.sentence, candidate.kind), []).append(candidate)
    seen: set[str] = set()
    for (_, kind), group in groups.items():
        candidate = rng.choice(group)
        if rng.random() >= KIND_SHARES.get(kind, 1):
            continue
        who = pronoun if pronoun and rng.random() < 0.5 else "the patient"
        words = reword(note, candidate.words.replace("{who}", who), candidate.answer, rng)
        if words not in seen:
            seen.add(words)
            yield candidate.kind, words, candidate.answer


def find_candidates(note: Note) -> Iterator[QuestionCandidate]:
    text = note.text
    drugs = frozenset(
        text[mention.span.begin : mention.span.end].lower() for mention in note.mentions if mention.kind == "drug"
    )
    for number, sentence in enumerate(note.sentences):
        section = note.section(sentence.begin)
        if section and re.search(r"family|instruction|education", section.heading or "", re.IGNORECASE):
            continue
        begin = sentence.begin
        if section and section.heading_span and begin < section.heading_span.end <= sentence.end:
            begin = section.heading_span.end
        label = LABEL.match(text, begin, sentence.end)
        span = Span(label.end() if label else begin, sentence.end)
        if (
            "\n\n" in span.of(text).strip()
            or re.search(r"\n\s*[-•*\d]", span.of(text))
            or not re.search(r"[.;]\s*$", span.of(text))
        ):
            continue
        questions: list[ClauseQuestion] = list(ask_fixed_patterns(text, span))
        for clause in find_clauses(text, span):
            questions += ask_about(clause, drugs)
        for question in questions:
            answer = trim_span(text, *question.answer)
            words = " ".join(question.words.split())
            if _is_good(words, answer.of(text), question.kind):
                content = frozenset(word for word in WORD.findall(words.lower()) if word not in FUNCTION_WORDS)
                yield QuestionCandidate(question.kind, words, answer, number, content)


def _is_good(words: str, answer: str, kind: str) -> bool:
    """Tell whether a person could have written such a question and answer."""
    question, lower_answer = words.lower(), answer.lower()
    question_words, answer_words = (
        set(WORD.findall(question)) - FUNCTION_WORDS,
        set(WORD.findall(lower_answer)) - FUNCTION_WORDS,
    )
    question_length, answer_length = len(words.split()), len(answer.split())
    if (
        not 3 + (kind != "how old") <= question_length + words.count("{who}") <= 22
        or not 1 <= answer_length <= 25
        or not words.endswith("?")
    ):
        return False
    if (
        re.search(r" ,|\b(\w+) \1\b|\bany\b.* no |\b(?:his|her) yet\b", words)
        or VAGUE_WORD.search(words, 5)
        or VERBLESS.match(words)
        or re.search(r"[;:\"“”?]", words[:-1])
        or words[:-1].split()[-1].lower()
        in NOT_LAST_WORDS - {"of", "on", "with", "to", "from", "for", "by", "in", "as"}
    ):
        return False
    if (
        set(lower_answer.split()) <= PRONOUNS | NOT_LAST_WORDS
        or lower_answer.split()[-1] in NOT_LAST_WORDS
        or lower_answer.split()[0] in ("and", "or", "it", "this", "these", "they")
    ):
        return False
    if answer.count("(") != answer.count(")") or lower_answer in question or "\n\n" in answer:
        return False
    if kind in ("how old", "yes or no"):
        return kind == "how old" or bool(question_words)
    return not (question_words and question_words <= answer_words) and bool(
        answer_words or kind in ("how many", "when")
    )


def _is_rival(candidate: QuestionCandidate, other: QuestionCandidate) -> bool:
    """Tell whether another candidate gives a different answer to what may be the same question."""
    same_kind = candidate.kind == other.kind or {candidate.kind, other.kind} <= {"what", "which", "who"}
    return (
        same_kind
        and candidate.answer != other.answer
        and candidate.content <= other.content
        and candidate.words.split()[0] == other.words.split()[0]
    )


def _pronouns_fit(candidate: QuestionCandidate, pronoun: str) -> bool:
    """Tell whether `he` and `she` in a question can only mean the patient."""
    used = set(re.findall(r"\b(?:he|she|him|his|her|hers)\b", candidate.words.lower()))
    return not used or (bool(pronoun) and used <= ({"he", "him", "his"} if pronoun == "he" else {"she", "her", "hers"}))
