"""Questions about sentences of fixed forms: `there was no ...`, sizes, ages, and `When she stood up, she ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.documents import Span
from capr.supervise.clauses.grammar import is_subject
from capr.supervise.clauses.inversion import ClauseQuestion
from capr.supervise.clauses.words import AUXILIARIES, tokenise, verbs_by_form

THERE = re.compile(
    r"(?:^|[,;]\s+|\band\s+)(?:[Tt]here)\s+(was|were|is|are)\s+((no\s+(?:signs?\s+of\s+|"
    r"evidence\s+of\s+|history\s+of\s+)?)|an?\s+)?"
    r"((?:(?!\b(?:which|that|who|but|because|although|and|with|on|in|at|during|after|or|to|for|over|"
    r"from|without|due|noted|seen|within)\b)[^.,;:()\n]){4,60})"
)
LESION = (
    r"(?:mass|lesion|tumou?r|cyst|nodule|aneurysm|abscess|hematoma|haematoma|polyp|ulcer|perforation|"
    r"defect|stone|calculus|"
    r"collection|laceration|thrombus|fistula|hernia|wound|node|opacity|effusion|vegetation|fragment|"
    r"foreign body|swelling|tear|plaque)"
)
SIZE = (
    r"\d+(?:\.\d+)?(?:\s?(?:mm|cm))?"
    r"(?:\s?(?:[x×*]|by)\s?\d+(?:\.\d+)?(?:\s?(?:mm|cm))?){0,2}[\s-]?(?:mm|cm|millimeters?|centimeters?)\b"
)
SIZE_BEFORE = re.compile(rf"\b(?:an?|the|one)\s+({SIZE})[\s-]+((?:[a-z-]+\s+){{0,3}}{LESION})\b")
SIZE_AFTER = re.compile(
    rf"\b(?:an?|the)\s+((?:[a-z-]+\s+){{0,3}}{LESION})\s*,?\s*(?:measuring|measured|that measured|which measured|of)\s+"
    rf"(?:about\s+|approximately\s+|up to\s+)?({SIZE}(?:\s+in\s+(?:diameter|size|length))?)"
)
AGE = re.compile(
    r"\b(\d{1,3}[\s-](?:year|month|week|day)s?[\s-]old)\s+(?:[A-Z]?[a-z-]+\s+){0,3}?(man|woman|boy|"
    r"girl|male|female|patient|infant|child|lady|gentleman)\b"
)
TIME_CLAUSE = re.compile(r"(When|While|As soon as|Upon|Whenever)\s+([^.,;:()\n]{8,90}),\s+([^.;:()\n]{8,160})")
SITE = re.compile(
    r"\b((?:severe |acute |sharp |mild |intense |chronic )?(?:pain|swelling|numbness|weakness|"
    r"tenderness|rash|redness|itching|"
    r"tingling|burning|stiffness|discomfort))\s+(?:in|on|over|of|around)\s+((?:the|his|her|both)\s+(?:[\w-]+\s+){0,3}?"
    r"(?:legs?|arms?|hands?|foot|feet|knees?|hips?|shoulders?|elbows?|wrists?|ankles?|fingers?|toes?|"
    r"thighs?|face|neck|chest|"
    r"abdomen|back|groin|eyes?|ears?|jaw|tongue|quadrant|region|area|fossa|calf|breasts?|scrotum|"
    r"extremit(?:y|ies)|side|limbs?))\b"
)
VAGUE_PRONOUN = re.compile(r"\b(?:it|this|these|those|they|them|which|such|same)\b", re.IGNORECASE)


def ask_fixed_patterns(text: str, sentence: Span) -> Iterator[ClauseQuestion]:
    """Yield the questions that a sentence of a fixed form answers."""
    for match in THERE.finditer(text, *sentence):
        verb, article, negation, rest = match[1].capitalize(), match[2] or "", match[3], " ".join(match[4].split())
        if (
            text[match.end() :].startswith("or ")
            or VAGUE_PRONOUN.search(rest)
            or len(rest.split()) > 7
            or rest.split()[-1].lower() in ("a", "the", "of", "by")
        ):
            continue
        begin = match.start(2) if match[2] else match.start(4)
        end = begin + len(text[begin : match.end(4)].rstrip())
        if negation:
            yield ClauseQuestion(
                "yes or no",
                f"{verb} there any {' '.join(negation.split()[1:])} {rest}?".replace("  ", " "),
                Span(begin, end),
            )
        elif (
            article.strip() in ("a", "an")
            and (head_noun := re.search(rf"(?:[a-z]{{4,}}\s+)?{LESION}$", rest))
            and head_noun[0] != rest
        ):
            yield ClauseQuestion(
                "yes or no", f"{verb} there {_article(head_noun[0])} {head_noun[0]}?", Span(begin, end)
            )
        elif article.strip() in ("a", "an") and len(rest.split()) > 1:
            yield ClauseQuestion("yes or no", f"{verb} there {article.strip()} {rest}?", Span(match.start(1), end))
    for match in SIZE_BEFORE.finditer(text, *sentence):
        yield from _ask_size(" ".join(match[2].split()), Span(*match.span(1)))
    for match in SIZE_AFTER.finditer(text, *sentence):
        yield from _ask_size(" ".join(match[1].split()), Span(*match.span(2)))
    for match in AGE.finditer(text, *sentence):
        yield ClauseQuestion("how old", "How old was {who}?", Span(*match.span(1)))
        yield ClauseQuestion("how old", "How old is {who}?", Span(*match.span(1)))
    for match in SITE.finditer(text, *sentence):
        if not re.search(r"\b(?:no|not|den\w+|without)\b[^.;]*$", text[sentence.begin : match.start()], re.IGNORECASE):
            yield ClauseQuestion("where", f"Where was the {match[1]}?", Span(*match.span(2)))
            yield ClauseQuestion("where", f"Where did {{who}} have {match[1]}?", Span(*match.span(2)))
    time_clause = TIME_CLAUSE.match(text, sentence.begin, sentence.end)
    if time_clause and not VAGUE_PRONOUN.search(time_clause[2]) and _is_clause(text, Span(*time_clause.span(3))):
        words = " ".join(time_clause[2].split())
        yield ClauseQuestion(
            "what happened", f"What happened {time_clause[1].lower()} {words}?", Span(*time_clause.span(3))
        )


def _ask_size(name: str, answer: Span) -> Iterator[ClauseQuestion]:
    yield ClauseQuestion("how large", f"How large was the {name}?", answer)
    yield ClauseQuestion("how large", f"How big was the {name}?", answer)
    yield ClauseQuestion("how large", f"What was the size of the {name}?", answer)


def _article(words: str) -> str:
    return "an" if words[0] in "aeiou" else "a"


def _is_clause(text: str, span: Span) -> bool:
    """Tell whether a span begins with a subject and a verb."""
    words = tokenise(text, span)
    for index, word in enumerate(words[:9]):
        if index and (word.lower in AUXILIARIES or word.lower in verbs_by_form()[0]):
            return is_subject(words[:index]) or words[0].lower in ("he", "she")
    return False
