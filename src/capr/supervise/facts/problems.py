"""Problems: what is not there, what runs in the family, what something is due to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.annotate.mentions import Mention
from capr.documents import Span
from capr.supervise.facts.note import PROBLEMS, VAGUE, Fact, Note, trimmed, words_in

RELATIVE = re.compile(
    r"\b(?:(?:maternal|paternal|older|younger|elder|great|half)[\s-]*)*"
    r"(?:mother|father|brother|sister|son|daughter|grandmother|grandfather|aunt|uncle|cousin|niece|"
    r"nephew)s?\b(?!['’]s (?:side|family))",
    re.IGNORECASE,
)
OTHERS = re.compile(
    r"\b(?:dad|mom|mum|mother|father|parents?|husband|wife|partner|boyfriend|girlfriend|brother|sister)\b",
    re.IGNORECASE,
)
ANOTHER = re.compile(r"(?:,|\band|\bor|/|&)\s*(?:an?\s+|his\s+|her\s+|one\s+)?$", re.IGNORECASE)
CAUSE = re.compile(
    r"[\s,]+(?:(?:was|is|which|felt|thought|likely|probably|most|to|be|presumed|presumably|believed)\s+){0,5}"
    r"(?:due|secondary|attributed)\s+to\s+(?:a\s+|an\s+|the\s+|his\s+|her\s+)?"
    r"((?:(?!\b(?:which|that|who|but|with|and (?:was|is|he|she|the|has|had)|however)\b)[^.,;:()\n\[]){3,80})",
    re.IGNORECASE,
)
HAS = re.compile(r":|[-–—]\s|\b(?:has|have|had|with|died|diagnosed|of|from|suffer\w*)\b", re.IGNORECASE)
HAS_NOT = re.compile(r";|\b(?:no|by|and|complain\w*|report\w*|states?|says|den(?:ies|ied))\b", re.IGNORECASE)
LONGEST = 8  # words of an answer that says what is not there
SENTENCE = 20  # words of a sentence that is an answer


def absent(note: Note) -> Iterator[Fact]:
    """What the note says is not there, wherever it speaks of it: `denies chest pain`."""
    found: dict[str, list[Mention]] = {}
    for mention in note.mentions:
        if mention.kind in PROBLEMS and note.document[mention.span].lower() not in VAGUE:
            found.setdefault(note.key(mention), []).append(mention)
    for mentions in found.values():
        if all(set(mention.context) == {"negated"} for mention in mentions):
            spans = [_with_cue(note, mention) for mention in mentions]
            yield from (note.about("absent", mentions[0], span) for span in spans if span)


def _with_cue(note: Note, mention: Mention) -> Span | None:
    """The mention with the word that negates it, if the two stand close together in one sentence."""
    cue = mention.context["negated"].span
    if cue is None:
        return None
    span = Span(min(cue.begin, mention.span.begin), max(cue.end, mention.span.end))
    between = note.text[span.begin : span.end]
    if re.search(r"[;:]|\bbut\b|\n\s*\n|\n\s*[-•*\d]", between) or words_in(note.text, span) > LONGEST:
        return None
    return span if note.sentence(span.begin).covers(span) else None


def family(note: Note) -> Iterator[Fact]:
    """Which relative had what."""
    for mention in note.mentions:
        if mention.kind not in PROBLEMS or not mention.family or mention.negated or mention.possible:
            continue
        sentence = note.sentence(mention.span.begin)
        named = list(RELATIVE.finditer(note.text, sentence.begin, mention.span.begin))
        if not named or not _has(note, named[-1].end(), mention.span.begin):
            continue
        last = named[-1]
        if not ANOTHER.search(note.text, sentence.begin, last.start()):
            yield note.about("relative", mention, Span(*last.span()))
        if words_in(note.text, sentence) < SENTENCE and "\n\n" not in sentence.of(note.text):
            yield note.about("family", mention, trimmed(note.text, *_body(note, sentence)))


def _has(note: Note, begin: int, end: int) -> bool:
    """Whether the words between a relative and a problem, only a few, say that the one has or had the other."""
    between = note.text[begin:end]
    return len(between.split()) <= LONGEST and not HAS_NOT.search(between) and HAS.search(between) is not None


def _body(note: Note, sentence: Span) -> Span:
    """A sentence without the heading on its line."""
    section = note.section(sentence.begin)
    if section and section.heading_span and sentence.begin < section.heading_span.end < sentence.end:
        return Span(section.heading_span.end, sentence.end)
    return sentence


def causes(note: Note) -> Iterator[Fact]:
    """`anemia, likely due to chronic kidney disease`."""
    for problem in note.problems():
        match = CAUSE.match(note.text, problem.span.end, note.sentence(problem.span.begin).end)
        if match:
            answer = trimmed(note.text, *match.span(1))
            if OTHERS.search(note.sentence(problem.span.begin).of(note.text)):
                continue
            if answer.begin < answer.end and words_in(note.text, answer) <= LONGEST:
                yield note.about("cause", problem, answer)
