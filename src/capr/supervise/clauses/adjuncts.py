"""Adjuncts: the parts of a clause that say when, how long, how often, why, where, by whom and how."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from capr.supervise.clauses.grammar import ParsedClause
from capr.supervise.clauses.words import AUXILIARIES, DETERMINERS, is_participle, verbs_by_form
from capr.supervise.facts.dates import DATE
from capr.supervise.facts.drugs import OFTEN

NUMBER = (
    r"(?:\d+(?:\.\d+)?(?:\s?(?:-|–|to)\s?\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"fifteen|twenty|thirty|several|a\s+few|many)"
)
UNIT = r"(?:seconds?|minutes?|min|hours?|h|days?|nights?|weeks?|months?|years?)(?!\w)"
ABOUT = r"(?:(?:about|approximately|around|nearly|almost|over|more than|less than|at least|only|up to|a total of)\s+)?"
ORDINAL = r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:st|nd|rd|th))"
DAY = r"(?:post-?operative|post-?op|hospital|hospitalization|admission|ICU|treatment)[\s-]+"
COMPLETE_TIME = re.compile(
    rf"(?:on|by)\s+(?:the\s+)?(?:{DAY})?day\s+\d+|on\s+(?:the\s+)?{ORDINAL}\s+(?:{DAY})?day|"
    rf"(?:in|on|since|until)\s+{DATE}|on\s+(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|at\s+birth(?!\w)|"
    rf"at\s+{ABOUT}{NUMBER}\s+{UNIT}(?:\s+of\s+(?:age|gestation|follow-up))?|at\s+(?:the|"
    rf"an)\s+age\s+of\s+\d+(?:\s+years)?|"
    rf"{ABOUT}{NUMBER}\s+{UNIT}\s+(?:later|ago|earlier|previously|postoperatively)|within\s+{ABOUT}{NUMBER}\s+{UNIT}|"
    r"(?:the\s+)?(?:next|following|same)\s+(?:day|morning|night|week|month|year)(?!\w)|"
    r"(?:yesterday|overnight|last\s+(?:night|week|month|year))(?!\w)",
    re.IGNORECASE,
)
TIME_START = re.compile(
    rf"(?:{ABOUT}{NUMBER}\s+{UNIT}\s+(?:after|before|prior\s+to|following|post)|"
    rf"on\s+(?:the\s+)?(?:{DAY})?day\s+\d+\s+(?:after|of|following)|on\s+(?:the\s+)?{ORDINAL}\s+day\s+(?:after|of)|"
    rf"(?:immediately|right|soon|just)\s+(?:after|before)|after|before|prior\s+to|during|shortly\s+after)\s+(?=\w)",
    re.IGNORECASE,
)
DURATION = re.compile(
    rf"(?:for|over)\s+(?:the\s+)?(?:past\s+|last\s+|next\s+|previous\s+)?{ABOUT}(?:the\s+(?:past|"
    rf"last)\s+)?{NUMBER}(?:\s+more)?[\s-]{UNIT}",
    re.IGNORECASE,
)
CAUSE = re.compile(
    r"(?:because\s+of|due\s+to|owing\s+to|on\s+account\s+of|in\s+view\s+of|secondary\s+to|"
    r"as\s+a\s+result\s+of|in\s+light\s+of|"
    r"because|given(?=\s+(?:the|his|her|a|an|that|concern|its)\s))\s+(?:that\s+)?(?=\w)",
    re.IGNORECASE,
)
CLAUSAL_CAUSE = re.compile(r"(?:since|as)\s+(?=(?:he|she|the|his|her|there|it|no)\s)", re.IGNORECASE)
PURPOSE = re.compile(r"(?:in\s+order\s+)?to\s+(\w+)\s")
PURPOSE_VERBS = frozenset(
    "exclude rule assess evaluate determine confirm prevent reduce relieve control treat investigate "
    "avoid improve obtain "
    "identify decompress drain remove stop allow preserve maintain achieve establish clarify define detect minimize "
    "correct repair visualize secure restore help decrease increase suppress facilitate protect "
    "manage check look".split()
)
VERBS_WITH_REASON = frozenset(
    "admitted hospitalized hospitalised referred treated evaluated seen operated prescribed given "
    "started scheduled investigated "
    "monitored underwent performed taken readmitted transferred consulted sent administered indicated".split()
)
NOT_AFTER_FOR = frozenset(
    "the first one two three four five six seven eight ten several a an many all each both at another".split()
)
PERSON = re.compile(
    r"\b(?:surgeons?|physicians?|doctors?|Dr\.|cardiologists?|neurologists?|neurosurgeons?|"
    r"oncologists?|nurses?|dentist|"
    r"pathologists?|radiologists?|psychiatrists?|urologists?|ophthalmologists?|dermatologists?|gynecologists?|"
    r"pediatricians?|hematologists?|nephrologists?|gastroenterologists?|endocrinologists?|"
    r"rheumatologists?|practitioner|"
    r"paramedics|ambulance|mother|father|wife|husband|son|daughter|brother|sister|parents|family|friends?|roommate|"
    r"neighbou?r|police|team|midwife|caregivers?|colleagues?|coworkers?|teacher|partner|uncle|aunt|grandmother|"
    r"grandfather|pharmacist|therapist)\b",
    re.IGNORECASE,
)
PLACE = re.compile(
    r"\b(?:hospital|unit|ward|department|clinic|ICU|CCU|NICU|PICU|MICU|SICU|room|ED|ER|center|centre|"
    r"home|facility|office|floor|"
    r"theat(?:er|re)|institution|house|work|school|practice|suite|hospice|rehabilitation|service)\b"
)
SITE = re.compile(
    r"\b(?:lobes?|lungs?|liver|kidneys?|spleen|pancreas|brain|heart|ventricles?|atrium|aorta|"
    r"arter(?:y|ies)|veins?|legs?|arms?|"
    r"hands?|foot|feet|knees?|hips?|shoulders?|elbows?|wrists?|ankles?|fingers?|toes?|thighs?|calf|"
    r"calves|forearms?|face|"
    r"scalp|neck|chest|breasts?|abdomen|back|groin|pelvis|bladder|ureters?|urethra|prostate|test[ie]s|"
    r"uterus|ovar(?:y|ies)|"
    r"cervix|vagina|colon|rectum|cecum|ileum|jejunum|duodenum|stomach|esophagus|bowel|appendix|gallbladder|ducts?|skin|"
    r"eyes?|retina|cornea|ears?|nose|mouth|tongue|throat|larynx|trachea|bronch(?:us|i)|pleura|pericardium|peritoneum|"
    r"spine|vertebra(?:e)?|cord|ribs?|sternum|femur|tibia|fibula|humerus|radius|ulna|skull|mandible|"
    r"maxilla|orbit|sinus(?:es)?|"
    r"hemispheres?|cerebellum|thalamus|ganglia|cortex|nodes?|quadrants?|regions?|areas?|wall|side|"
    r"extremit(?:y|ies)|fossa|"
    r"trunk|head|gland|nerves?|muscles?|axilla|buttocks?|space|cavity|valves?|segment)\b",
    re.IGNORECASE,
)
PHRASE_ENDS = frozenset("in on at for with by from to and , that without as or where after".split())


class Adjunct(NamedTuple):
    """A part of a clause.

    Attributes:
        kind: `when`, `lasting`, `often`, `cause`, `for`, `purpose`, `by`, `place` or `site`.
        begin: its first token, often a preposition.
        answer_begin: the first token of the answer.
        end: the end of both.
    """

    kind: str
    begin: int
    answer_begin: int
    end: int


def find_adjuncts(clause: ParsedClause) -> list[Adjunct]:
    """Return the adjuncts after the verb, in order."""
    adjuncts: list[Adjunct] = []
    index = clause.verb[1]
    while index < clause.end:
        adjunct, next_index = _adjunct_at(clause, index)
        if adjunct and not (adjuncts and adjuncts[-1].kind == "cause"):
            if adjuncts and adjuncts[-1].end > index:
                adjuncts[-1] = adjuncts[-1]._replace(end=index)
            adjuncts.append(adjunct)
        index = max(index + 1, next_index)
    return [adjunct._replace(end=_trim_end(clause, adjunct.answer_begin, adjunct.end)) for adjunct in adjuncts]


def find_lead(clause: ParsedClause) -> Adjunct | None:
    """Return the adjunct before the subject, if a rule understands it."""
    begin, end = clause.lead
    if begin >= end:
        return None
    start, stop = clause.words[begin].begin, clause.words[end - 1].end
    if COMPLETE_TIME.fullmatch(clause.text, start, stop):
        return Adjunct("when", begin, begin, end)
    if TIME_START.match(clause.text, start, stop) and not set(clause.lower_words(begin, end)) & {
        "this",
        "that",
        "these",
        "which",
    }:
        return Adjunct("when", begin, begin, end)
    if match := CAUSE.match(clause.text, start, stop):
        return Adjunct("cause", begin, _token_index(clause, match.end()), end)
    if clause.words[begin].lower == "for" and DURATION.fullmatch(clause.text, start, stop):
        return Adjunct("lasting", begin, begin + 1, end)
    return None


def _adjunct_at(clause: ParsedClause, index: int) -> tuple[Adjunct | None, int]:
    """Return the adjunct that begins at a token, and the token where the next may begin."""
    adjunct = _match_adjunct(clause, index)
    if adjunct is None or adjunct.end < clause.end or adjunct.kind in ("often", "lasting", "place", "site"):
        return adjunct, adjunct.end if adjunct else 0
    begin = clause.words[index].begin
    times = [
        match for match in (TIME_START.match(clause.text, begin), COMPLETE_TIME.match(clause.text, begin)) if match
    ]
    return adjunct, _token_index(clause, max(match.end() for match in times)) if times else adjunct.answer_begin


def _match_adjunct(clause: ParsedClause, index: int) -> Adjunct | None:
    text, word, stop = clause.text, clause.words[index], clause.words[clause.end - 1].end
    before = clause.words[index - 1].lower
    if match := CAUSE.match(text, word.begin, stop):
        if before in ("likely", "probably", "possibly", "presumably", "perhaps", "not", "part"):
            return None
        return Adjunct("cause", index, _token_index(clause, match.end()), clause.end)
    if (match := CLAUSAL_CAUSE.match(text, word.begin, stop)) and _has_verb(clause, index + 2):
        return Adjunct("cause", index, index + 1, clause.end)
    if word.text[0].isdecimal() and before in ("day", "of", "at", "for", "to", "than"):
        return None
    if match := TIME_START.match(text, word.begin, stop):
        return Adjunct("when", index, index, clause.end)
    if match := COMPLETE_TIME.match(text, word.begin, stop):
        return Adjunct("when", index, index, _token_index(clause, match.end()))
    if match := DURATION.match(text, word.begin, stop):
        following = (
            clause.words[next_index].lower if (next_index := _token_index(clause, match.end())) < clause.end else ""
        )
        if following in ("history", "of", "ago", "prior", "before", "after"):
            return None
        return Adjunct("lasting", index, index + 1, _token_index(clause, match.end()))
    main_verb = clause.words[clause.verb[1] - 1].lower
    if (
        word.lower == "for"
        and main_verb in VERBS_WITH_REASON
        and index + 1 < clause.end
        and clause.words[index + 1].lower not in NOT_AFTER_FOR
    ):
        return Adjunct("for", index, index + 1, clause.end)
    if (match := OFTEN.match(text, word.begin, stop)) and word.lower not in ("in", "at", "before", "qd", "od", "bd"):
        return Adjunct("often", index, index, _token_index(clause, match.end()))
    if (match := PURPOSE.match(text, word.begin, stop)) and match[1] in PURPOSE_VERBS and index > clause.verb[1] - 1:
        return Adjunct("purpose", index, index, clause.end)
    if word.lower == "by" and index + 1 < clause.end and (index == clause.verb[1] or not is_participle(before)):
        return Adjunct("by", index, index + 1, clause.end)
    if word.lower in ("to", "at", "into", "in", "on", "over", "within", "from") and index + 1 < clause.end:
        phrase_end = _noun_phrase_end(clause, index + 1)
        phrase = (
            text[clause.words[index + 1].begin : clause.words[phrase_end - 1].end] if phrase_end > index + 1 else ""
        )
        if PLACE.search(phrase) and phrase_end - index <= 9:
            return Adjunct("place", index, index + 1, phrase_end)
        if SITE.search(phrase) and word.lower not in ("to", "from", "into") and phrase_end - index <= 9:
            return Adjunct("site", index, index + 1, phrase_end)
    return None


def _noun_phrase_end(clause: ParsedClause, begin: int) -> int:
    """Return the end of a noun phrase: the next conjunction, punctuation mark or preposition other than `of`."""
    index = begin
    while index < clause.end and clause.words[index].lower not in PHRASE_ENDS | AUXILIARIES:
        if CAUSE.match(clause.text, clause.words[index].begin) or (
            index > begin and clause.words[index].lower in DETERMINERS and clause.words[index - 1].lower != "of"
        ):
            break
        if (
            index > begin
            and is_participle(clause.words[index].lower)
            and index + 1 < clause.end
            and clause.words[index + 1].lower == "by"
        ):
            break
        index += 1
    return index


def _token_index(clause: ParsedClause, position: int) -> int:
    """Return the index of the first token at or after a position of the text."""
    return next((index for index, word in enumerate(clause.words) if word.begin >= position), len(clause.words))


def _has_verb(clause: ParsedClause, begin: int) -> bool:
    words: Sequence[str] = clause.lower_words(begin, clause.end)
    return any(word in AUXILIARIES or word in verbs_by_form()[0] for word in words[:8])


def _trim_end(clause: ParsedClause, begin: int, end: int) -> int:
    while end > begin + 1 and clause.words[end - 1].lower in (",", "and", "or", "but", "-"):
        end -= 1
    return end
