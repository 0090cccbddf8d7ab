"""Questions and answers about notes, made from the notes themselves: templates filled with facts that capr finds.

emrQA made its questions in the same way from expert annotations (Pampari et al. 2018). Here `annotate` and a few
patterns replace the experts (`capr.supervise.facts`), and questions.tsv has the wordings. Other questions come from
plain clauses, each in its own words (`capr.supervise.clauses`).
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
from capr.supervise.clauses import clause_questions, use_lay_words
from capr.supervise.facts import Fact, Note, find_drugs_without_dose, find_facts, mention_patterns
from capr.supervise.reports import Report, ReportQuestion

PER_NOTE = 20
UNANSWERABLE = 0.3
OTHER_NAME_SHARE = 0.25  # how often a question uses another name than the note
CLAUSES = 0.5
CLAUSE = "clause: "  # prefix for the kind of a fact from a clause; its subject is the whole question
KIND_SHARES = {"age": 0.3}  # the share of these facts to keep, since nearly every note has them
TRIES = 20  # to find an unanswerable question
SIGNS = re.compile(r"[\s.,;:*-]+")
MALE, FEMALE = re.compile(r"\b(?:he|his|him|Mr|male|man)\b"), re.compile(r"\b(?:she|her|hers|Mrs|Ms|female|woman)\b")
WORD = re.compile(r"[a-z0-9]{4,}")


class Wording(NamedTuple):
    """A row of questions.tsv.

    Attributes:
        several: whether every fact of the kind is an answer, so that facts may differ; otherwise all must say the same.
        topic: matches a note that mentions the topic of the question. The question is surely unanswerable only for
            notes without a match. None if the subject is the topic.
        templates: several ways to ask.
    """

    several: bool
    topic: re.Pattern[str] | None
    templates: tuple[str, ...]


@cache
def wordings() -> Mapping[str, Wording]:
    """Read questions.tsv."""
    table = {}
    lines = files("capr.supervise").joinpath("questions.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        columns = line.split("\t")
        if len(columns) != 4 or columns[1] not in ("one", "all") or columns[0] in table:
            raise CaprError(f"questions.tsv, line {number}: {line[:60]!r} is not a new kind with its wordings.")
        kind, answers, unless, templates = columns
        topic = re.compile(unless, re.IGNORECASE) if unless else None
        table[kind] = Wording(answers == "all", topic, tuple(templates.split("|")))
    return table


@dataclass(slots=True)
class NoteFacts:
    """A note with the facts that questions can ask for, and the drugs for which it gives no dose.

    Attributes:
        document: the note.
        lower_text: its text in lower case, with single blanks.
        keys: the identities of everything that it mentions.
        facts: its facts from `capr.supervise.facts`, each with all spans that answer.
        without_dose: for each drug without a dose, the fact that would give it; it serves unanswerable questions.
        clauses: its facts from clauses, likewise with spans.
    """

    document: Document
    lower_text: str
    keys: frozenset[str]
    facts: list[tuple[Fact, tuple[Span, ...]]] = field(default_factory=list)
    without_dose: list[Fact] = field(default_factory=list)
    clauses: list[tuple[Fact, tuple[Span, ...]]] = field(default_factory=list)

    @classmethod
    def from_document(cls, document: Document, finder: Annotator, rng: random.Random | None = None) -> NoteFacts:
        """Find the facts of a document; without `rng`, which draws wordings, none from clauses."""
        note = Note.from_document(document, finder)
        missing = [Fact("dose", name, key, Span(0, 0)) for name, key in find_drugs_without_dose(note)]
        keys = frozenset(note.key(mention) for mention in note.mentions)
        clauses = list(_clause_facts(note, finder, rng)) if rng else []
        return cls(document, note.lower_text, keys, list(unambiguous_facts(note, find_facts(note))), missing, clauses)


def _clause_facts(note: Note, finder: Annotator, rng: random.Random) -> Iterator[tuple[Fact, tuple[Span, ...]]]:
    """Turn the questions of clauses into facts, keyed by the first drug or disease in the question."""
    for kind, wording, answer in clause_questions(note, rng):
        question = Note.from_document(Document("question", wording), finder)
        mentions = [mention for mention in question.mentions if mention.kind in ("drug", "disease") and mention.concept]
        key, other_name = (question.key(mentions[0]), question.name(mentions[0])) if mentions else ("", "")
        yield Fact(f"{CLAUSE}{kind}", wording, key, answer, other_name), (answer,)


def unambiguous_facts(note: Note, facts: Iterable[Fact]) -> Iterator[tuple[Fact, tuple[Span, ...]]]:
    """Yield the facts that one question can ask for, with all spans that answer it.

    A question needs one answer. If the note says different things (two doses of a drug), its facts are dropped.
    """
    groups: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        groups.setdefault((fact.kind, fact.key), []).append(fact)
    for (kind, _), group in groups.items():
        certain = [fact for fact in group if fact.certain]
        answers = {SIGNS.sub("", fact.answer.of(note.text).lower()) for fact in group}
        if certain and (len(answers) == 1 or wordings()[kind].several) and not _is_ambiguous(certain[0], groups):
            yield certain[0], tuple(dict.fromkeys(sorted(fact.answer for fact in certain)))


def _is_ambiguous(fact: Fact, groups: Mapping[tuple[str, str], object]) -> bool:
    """Tell whether the subject may also mean another one of the same kind: `CT` beside a `chest CT`."""
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
    """Yield reports of notes with questions about them; notes without any question yield no report.

    Unanswerable questions come from other notes: they ask about a drug, problem or test that this note does not mention
    at all. Others ask for the dose of drugs that the note mentions only in sentences without a number.

    Args:
        documents: notes. Unanswerable questions come from other notes, so the first report needs all of them.
        seed: the same seed and notes give the same questions.
        per_note: the maximum number of questions about one note; 0 for all.
        unanswerable: the share of questions that the note does not answer.
        finder: finds mentions; if None, with the built-in vocabulary.
        progress: called with the number of reports done and their total.
        clauses: the share of the answered questions that come from clauses, as far as there are enough; 0 for none.
    """
    if not 0 <= unanswerable < 1:
        raise CaprError(f"the share of unanswerable questions is {unanswerable}. Fix: give it from 0 to below 1.")
    finder = finder or annotator(with_tagger=False)
    if not 0 <= clauses <= 1:
        raise CaprError(f"the share of questions from clauses is {clauses}. Fix: give it from 0 to 1.")
    notes = (
        NoteFacts.from_document(document, finder, random.Random(f"{seed} clauses {document.id}") if clauses else None)
        for document in documents
    )
    askable = [note_facts for note_facts in notes if note_facts.facts or note_facts.clauses]
    facts_by_kind: dict[str, list[Fact]] = {}
    for note_facts in askable:
        for fact, _ in [*note_facts.facts, *note_facts.clauses]:
            if fact.key:
                facts_by_kind.setdefault(fact.kind, []).append(fact)
    for number, note_facts in enumerate(askable, 1):
        yield _report(
            note_facts,
            facts_by_kind,
            random.Random(f"{seed} {note_facts.document.id}"),
            per_note,
            unanswerable,
            clauses,
        )
        progress(number, len(askable))


def _report(
    note_facts: NoteFacts,
    facts_by_kind: Mapping[str, Sequence[Fact]],
    rng: random.Random,
    per_note: int,
    share: float,
    clauses: float,
) -> Report:
    total = len(note_facts.facts) + len(note_facts.clauses)
    answered_count = max(1, round(per_note * (1 - share)) if per_note else total)
    facts = [item for item in note_facts.facts if rng.random() < KIND_SHARES.get(item[0].kind, 1)]
    clause_count = min(len(note_facts.clauses), max(round(answered_count * clauses), answered_count - len(facts)))
    selection = _spread_over_kinds(facts, answered_count - clause_count, rng) + _spread_over_kinds(
        note_facts.clauses, clause_count, rng
    )
    no_answer: tuple[Span, ...] = ()
    selection += [
        (fact, no_answer)
        for fact in _unmentioned_facts(note_facts, facts_by_kind, rng, round(len(selection) * share / (1 - share)))
    ]
    rng.shuffle(selection)
    questions = [
        ReportQuestion(f"{note_facts.document.id}/{number}", _word_question(fact, note_facts, rng), spans)
        for number, (fact, spans) in enumerate(selection, 1)
    ]
    return Report(note_facts.document, tuple({question.text: question for question in questions}.values()))


def _spread_over_kinds(
    items: Sequence[tuple[Fact, tuple[Span, ...]]], count: int, rng: random.Random
) -> list[tuple[Fact, tuple[Span, ...]]]:
    """Pick items from one kind after the other, so that a long list of drugs does not crowd out the rest."""
    by_kind: dict[str, list[tuple[Fact, tuple[Span, ...]]]] = {}
    for item in rng.sample(items, len(items)):
        by_kind.setdefault(item[0].kind, []).append(item)
    spread: list[tuple[Fact, tuple[Span, ...]]] = []
    while len(spread) < min(count, len(items)):
        spread += [items_of_kind.pop() for items_of_kind in by_kind.values() if items_of_kind]
    return spread[:count]


def _unmentioned_facts(
    note_facts: NoteFacts, facts_by_kind: Mapping[str, Sequence[Fact]], rng: random.Random, count: int
) -> list[Fact]:
    """Draw facts of other notes about subjects that this note does not mention."""
    unmentioned = dict.fromkeys(rng.sample(note_facts.without_dose, min(len(note_facts.without_dose), count // 3)))
    kinds = sorted(kind for kind in facts_by_kind if kind not in ("absent", "family", "relative"))
    for _ in range(TRIES * count):
        if len(unmentioned) >= count:
            break
        fact = rng.choice(facts_by_kind[rng.choice(kinds)])
        if is_unmentioned(fact, note_facts.document.text, note_facts.lower_text, note_facts.keys):
            unmentioned[fact] = None
    return list(unmentioned)


def is_unmentioned(fact: Fact, text: str, lower_text: str, keys: frozenset[str]) -> bool:
    """Tell whether a note never mentions the subject of a fact, in any of its words or under any name.

    Args:
        fact: a fact of another note.
        text: the text of the note. Capital letters are part of the name of some tests (K, Na).
        lower_text: the text in lower case, with single blanks.
        keys: the identities of everything that the note mentions.
    """
    if fact.kind.startswith(CLAUSE):
        return fact.key not in keys and not any(
            word in lower_text for word in WORD.findall(fact.other_name.lower()) or [fact.other_name]
        )
    if fact.kind == "value":
        return (
            mention_patterns()[fact.key].search(text) is None
            and mention_patterns()[fact.key].search(lower_text) is None
        )
    if not fact.subject:
        topic = wordings()[fact.kind].topic
        return topic is not None and topic.search(lower_text) is None
    words = WORD.findall(f"{fact.subject} {fact.other_name}".lower()) or [fact.subject.lower()]
    return fact.key not in keys and not any(word in lower_text for word in words)


def _word_question(fact: Fact, note_facts: NoteFacts, rng: random.Random) -> str:
    """Put a question into words, about `the patient`, or with a pronoun if the note shows the gender."""
    if fact.kind.startswith(CLAUSE):
        return fact.subject
    male, female = len(MALE.findall(note_facts.document.text)), len(FEMALE.findall(note_facts.document.text))
    use_pronoun = max(male, female) > 3 * min(male, female) and rng.random() < 0.5
    who, whose, whom = ("he", "his", "him") if male > female else ("she", "her", "her")
    if not use_pronoun:
        who, whose, whom = "the patient", "the patient's", "the patient"
    subject = fact.other_name if fact.other_name and rng.random() < OTHER_NAME_SHARE else fact.subject
    template = rng.choice(wordings()[fact.kind].templates)
    owner = {"who_him": whom, "whose_own": "his" if who == "he" else "hers" if who == "she" else "the patient"}
    return use_lay_words(template.format(subject=subject, who=who, whose=whose, **owner), rng)
