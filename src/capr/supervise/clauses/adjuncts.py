"""What stands around the core of a clause: when, how long, how often, why, where, by whom, and how."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from capr.supervise.clauses.grammar import Clause
from capr.supervise.clauses.words import AUXILIARIES, DETERMINERS, forms, is_participle
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
CLOSED = re.compile(
    rf"(?:on|by)\s+(?:the\s+)?(?:{DAY})?day\s+\d+|on\s+(?:the\s+)?{ORDINAL}\s+(?:{DAY})?day|"
    rf"(?:in|on|since|until)\s+{DATE}|on\s+(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|at\s+birth(?!\w)|"
    rf"at\s+{ABOUT}{NUMBER}\s+{UNIT}(?:\s+of\s+(?:age|gestation|follow-up))?|at\s+(?:the|"
    rf"an)\s+age\s+of\s+\d+(?:\s+years)?|"
    rf"{ABOUT}{NUMBER}\s+{UNIT}\s+(?:later|ago|earlier|previously|postoperatively)|within\s+{ABOUT}{NUMBER}\s+{UNIT}|"
    r"(?:the\s+)?(?:next|following|same)\s+(?:day|morning|night|week|month|year)(?!\w)|"
    r"(?:yesterday|overnight|last\s+(?:night|week|month|year))(?!\w)",
    re.IGNORECASE,
)
OPEN = re.compile(
    rf"(?:{ABOUT}{NUMBER}\s+{UNIT}\s+(?:after|before|prior\s+to|following|post)|"
    rf"on\s+(?:the\s+)?(?:{DAY})?day\s+\d+\s+(?:after|of|following)|on\s+(?:the\s+)?{ORDINAL}\s+day\s+(?:after|of)|"
    rf"(?:immediately|right|soon|just)\s+(?:after|before)|after|before|prior\s+to|during|shortly\s+after)\s+(?=\w)",
    re.IGNORECASE,
)
LASTING = re.compile(
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
CLAUSAL = re.compile(r"(?:since|as)\s+(?=(?:he|she|the|his|her|there|it|no)\s)", re.IGNORECASE)
PURPOSE = re.compile(r"(?:in\s+order\s+)?to\s+(\w+)\s")
AIMS = frozenset(
    "exclude rule assess evaluate determine confirm prevent reduce relieve control treat investigate "
    "avoid improve obtain "
    "identify decompress drain remove stop allow preserve maintain achieve establish clarify define detect minimize "
    "correct repair visualize secure restore help decrease increase suppress facilitate protect "
    "manage check look".split()
)
TREATED = frozenset(
    "admitted hospitalized hospitalised referred treated evaluated seen operated prescribed given "
    "started scheduled investigated "
    "monitored underwent performed taken readmitted transferred consulted sent administered indicated".split()
)
NOT_FOR = frozenset(
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


class Adjunct(NamedTuple):
    """A part of a clause: its sort, from where (with its preposition), from where it answers, and to where."""

    sort: str
    begin: int
    inner: int
    end: int


def adjuncts(clause: Clause) -> list[Adjunct]:
    """Those after the verb, in order."""
    found: list[Adjunct] = []
    at = clause.verb[1]
    while at < clause.end:
        one, resume = _at(clause, at)
        if one and not (found and found[-1].sort == "cause"):
            if found and found[-1].end > at:
                found[-1] = found[-1]._replace(end=at)
            found.append(one)
        at = max(at + 1, resume)
    return [one._replace(end=_trimmed(clause, one.inner, one.end)) for one in found]


def lead(clause: Clause) -> Adjunct | None:
    """What stands before the subject, if it is understood."""
    begin, end = clause.lead
    if begin >= end:
        return None
    start, stop = clause.words[begin].begin, clause.words[end - 1].end
    if CLOSED.fullmatch(clause.text, start, stop):
        return Adjunct("when", begin, begin, end)
    if OPEN.match(clause.text, start, stop) and not set(clause.lower(begin, end)) & {"this", "that", "these", "which"}:
        return Adjunct("when", begin, begin, end)
    if match := CAUSE.match(clause.text, start, stop):
        return Adjunct("cause", begin, _index(clause, match.end()), end)
    if clause.words[begin].lower == "for" and LASTING.fullmatch(clause.text, start, stop):
        return Adjunct("lasting", begin, begin + 1, end)
    return None


def _at(clause: Clause, at: int) -> tuple[Adjunct | None, int]:
    """The adjunct that begins there, and from where on another may follow."""
    one = _found(clause, at)
    if one is None or one.end < clause.end or one.sort in ("often", "lasting", "place", "site"):
        return one, one.end if one else 0
    opened = OPEN.match(clause.text, clause.words[at].begin)
    closed = CLOSED.match(clause.text, clause.words[at].begin)
    return one, _index(clause, max(m.end() for m in (opened, closed) if m)) if opened or closed else one.inner


def _found(clause: Clause, at: int) -> Adjunct | None:
    text, word, stop = clause.text, clause.words[at], clause.words[clause.end - 1].end
    before = clause.words[at - 1].lower
    if match := CAUSE.match(text, word.begin, stop):
        if before in ("likely", "probably", "possibly", "presumably", "perhaps", "not", "part"):
            return None
        return Adjunct("cause", at, _index(clause, match.end()), clause.end)
    if (match := CLAUSAL.match(text, word.begin, stop)) and _has_verb(clause, at + 2):
        return Adjunct("cause", at, at + 1, clause.end)
    if word.text[0].isdecimal() and before in ("day", "of", "at", "for", "to", "than"):
        return None
    if match := OPEN.match(text, word.begin, stop):
        return Adjunct("when", at, at, clause.end)
    if match := CLOSED.match(text, word.begin, stop):
        return Adjunct("when", at, at, _index(clause, match.end()))
    if match := LASTING.match(text, word.begin, stop):
        following = clause.words[i].lower if (i := _index(clause, match.end())) < clause.end else ""
        if following in ("history", "of", "ago", "prior", "before", "after"):
            return None
        return Adjunct("lasting", at, at + 1, _index(clause, match.end()))
    main = clause.words[clause.verb[1] - 1].lower
    if word.lower == "for" and main in TREATED and at + 1 < clause.end and clause.words[at + 1].lower not in NOT_FOR:
        return Adjunct("for", at, at + 1, clause.end)
    if (match := OFTEN.match(text, word.begin, stop)) and word.lower not in ("in", "at", "before", "qd", "od", "bd"):
        return Adjunct("often", at, at, _index(clause, match.end()))
    if (match := PURPOSE.match(text, word.begin, stop)) and match[1] in AIMS and at > clause.verb[1] - 1:
        return Adjunct("purpose", at, at, clause.end)
    if word.lower == "by" and at + 1 < clause.end and (at == clause.verb[1] or not is_participle(before)):
        return Adjunct("by", at, at + 1, clause.end)
    if word.lower in ("to", "at", "into", "in", "on", "over", "within", "from") and at + 1 < clause.end:
        stop_at = _phrase(clause, at + 1)
        said = text[clause.words[at + 1].begin : clause.words[stop_at - 1].end] if stop_at > at + 1 else ""
        if PLACE.search(said) and stop_at - at <= 9:
            return Adjunct("place", at, at + 1, stop_at)
        if SITE.search(said) and word.lower not in ("to", "from", "into") and stop_at - at <= 9:
            return Adjunct("site", at, at + 1, stop_at)
    return None


def _phrase(clause: Clause, begin: int) -> int:
    """The end of a noun phrase: before the next preposition but `of`, sign or joining word."""
    stops = {
        "in",
        "on",
        "at",
        "for",
        "with",
        "by",
        "from",
        "to",
        "and",
        ",",
        "that",
        "without",
        "as",
        "or",
        "where",
        "after",
    }
    at = begin
    while at < clause.end and clause.words[at].lower not in stops | AUXILIARIES:
        if CAUSE.match(clause.text, clause.words[at].begin) or (
            at > begin and clause.words[at].lower in DETERMINERS and clause.words[at - 1].lower != "of"
        ):
            break
        if (
            at > begin
            and is_participle(clause.words[at].lower)
            and at + 1 < clause.end
            and clause.words[at + 1].lower == "by"
        ):
            break
        at += 1
    return at


def _index(clause: Clause, position: int) -> int:
    """The first token from a position of the text on."""
    return next((i for i, word in enumerate(clause.words) if word.begin >= position), len(clause.words))


def _has_verb(clause: Clause, begin: int) -> bool:
    words: Sequence[str] = clause.lower(begin, clause.end)
    return any(word in AUXILIARIES or word in forms()[0] for word in words[:8])


def _trimmed(clause: Clause, begin: int, end: int) -> int:
    while end > begin + 1 and clause.words[end - 1].lower in (",", "and", "or", "but", "-"):
        end -= 1
    return end
