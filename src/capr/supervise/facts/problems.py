"""Problems: absent problems, problems of relatives, and causes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.annotate.mentions import Mention
from capr.documents import Span
from capr.supervise.facts.note import PROBLEM_KINDS, VAGUE_PROBLEMS, Fact, Note, count_words, trim_span

RELATIVE = re.compile(
    r"\b(?:(?:maternal|paternal|older|younger|elder|great|half)[\s-]*)*"
    r"(?:mother|father|brother|sister|son|daughter|grandmother|grandfather|aunt|uncle|cousin|niece|"
    r"nephew)s?\b(?!['’]s (?:side|family))",
    re.IGNORECASE,
)
OTHER_PERSON = re.compile(
    r"\b(?:dad|mom|mum|mother|father|parents?|husband|wife|partner|boyfriend|girlfriend|brother|sister)\b",
    re.IGNORECASE,
)
AFTER_CONJUNCTION = re.compile(r"(?:,|\band|\bor|/|&)\s*(?:an?\s+|his\s+|her\s+|one\s+)?$", re.IGNORECASE)
CAUSE = re.compile(
    r"[\s,]+(?:(?:was|is|which|felt|thought|likely|probably|most|to|be|presumed|presumably|believed)\s+){0,5}"
    r"(?:due|secondary|attributed)\s+to\s+(?:a\s+|an\s+|the\s+|his\s+|her\s+)?"
    r"((?:(?!\b(?:which|that|who|but|with|and (?:was|is|he|she|the|has|had)|however)\b)[^.,;:()\n\[]){3,80})",
    re.IGNORECASE,
)
HAS = re.compile(r":|[-–—]\s|\b(?:has|have|had|with|died|diagnosed|of|from|suffer\w*)\b", re.IGNORECASE)
HAS_NOT = re.compile(r";|\b(?:no|by|and|complain\w*|report\w*|states?|says|den(?:ies|ied))\b", re.IGNORECASE)
MAX_ANSWER_WORDS = 8  # of an answer, and between a relative and a problem
MAX_SENTENCE_WORDS = 20  # a sentence that is an answer has fewer


def find_absent_problems(note: Note) -> Iterator[Fact]:
    """Find problems that every mention in the note negates: `denies chest pain`."""
    by_key: dict[str, list[Mention]] = {}
    for mention in note.mentions:
        if mention.kind in PROBLEM_KINDS and note.document[mention.span].lower() not in VAGUE_PROBLEMS:
            by_key.setdefault(note.key(mention), []).append(mention)
    for mentions in by_key.values():
        if all(set(mention.context) == {"negated"} for mention in mentions):
            spans = [_with_cue(note, mention) for mention in mentions]
            yield from (note.fact_about("absent", mentions[0], span) for span in spans if span)


def _with_cue(note: Note, mention: Mention) -> Span | None:
    """Return the mention and the cue that negates it, if both are close together in one sentence."""
    cue = mention.context["negated"].span
    if cue is None:
        return None
    span = Span(min(cue.begin, mention.span.begin), max(cue.end, mention.span.end))
    between = note.text[span.begin : span.end]
    if re.search(r"[;:]|\bbut\b|\n\s*\n|\n\s*[-•*\d]", between) or count_words(note.text, span) > MAX_ANSWER_WORDS:
        return None
    return span if note.sentence(span.begin).covers(span) else None


def find_family_history(note: Note) -> Iterator[Fact]:
    """Find which relative had which problem."""
    for mention in note.mentions:
        if mention.kind not in PROBLEM_KINDS or not mention.family or mention.negated or mention.possible:
            continue
        sentence = note.sentence(mention.span.begin)
        relatives = list(RELATIVE.finditer(note.text, sentence.begin, mention.span.begin))
        if not relatives or not _relative_has(note, relatives[-1].end(), mention.span.begin):
            continue
        relative = relatives[-1]
        if not AFTER_CONJUNCTION.search(note.text, sentence.begin, relative.start()):
            yield note.fact_about("relative", mention, Span(*relative.span()))
        if count_words(note.text, sentence) < MAX_SENTENCE_WORDS and "\n\n" not in sentence.of(note.text):
            yield note.fact_about("family", mention, trim_span(note.text, *_without_heading(note, sentence)))


def _relative_has(note: Note, begin: int, end: int) -> bool:
    """Tell whether the few words between a relative and a problem say that the relative has or had it."""
    between = note.text[begin:end]
    return len(between.split()) <= MAX_ANSWER_WORDS and not HAS_NOT.search(between) and HAS.search(between) is not None


def _without_heading(note: Note, sentence: Span) -> Span:
    """Return a sentence without the heading on its line."""
    section = note.section(sentence.begin)
    if section and section.heading_span and sentence.begin < section.heading_span.end < sentence.end:
        return Span(section.heading_span.end, sentence.end)
    return sentence


def find_causes(note: Note) -> Iterator[Fact]:
    """Find causes in `anemia, likely due to chronic kidney disease`."""
    for problem in note.problems():
        match = CAUSE.match(note.text, problem.span.end, note.sentence(problem.span.begin).end)
        if match:
            answer = trim_span(note.text, *match.span(1))
            if OTHER_PERSON.search(note.sentence(problem.span.begin).of(note.text)):
                continue
            if answer.begin < answer.end and count_words(note.text, answer) <= MAX_ANSWER_WORDS:
                yield note.fact_about("cause", problem, answer)
