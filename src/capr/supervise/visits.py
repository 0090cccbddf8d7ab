"""Questions about notes from the visits that they record: what was asked aloud, and the words of the note that tell it.

Whoever asks a chart often uses other words than its author. In the transcript of a visit, doctors ask in plain words,
patients answer, and the note says the same in the language of notes: "have you been feeling winded?", "denies dyspnea".
So a question of the transcript becomes one about the note ("Has she been feeling winded?"), and the sentence that a
ranker finds to tell what was asked and answered is cut down to the words that answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capr.documents import Document, Span
from capr.index.words import stem
from capr.search.parse import stopwords
from capr.segment import sentences
from capr.supervise.questions import FEMALE, MALE
from capr.supervise.reports import Asked, Report

Scores = Callable[[str, Sequence[str]], Sequence[float]]
CLEAR = 1.0  # by how much the sentence that answers has to score higher than the next
SURE = -1.0  # that it has to score, at least
QUESTION_WORDS = 4, 30  # the fewest and the most
ANSWER_WORDS = 60  # of what the patient says that are read
SHORT_WORDS, LONG_WORDS = 14, 24  # of an answer to what, when or how many, and of any other, at most
DOCTORS = ("doctor", "guest_clinician", "guest clinician", "clinician", "nurse", "physician")
TURN = re.compile(r"^\s*(?:\[([A-Za-z][\w -]*)\]|([A-Z][\w ]{0,30}?)\s*:)\s*")
SAID = re.compile(r"[^.?!]+[.?!]*")
HESITATION = re.compile(
    r"(?<!\w)(?:um+|uh+|er|hmm+|mm-hmm)\b\s*,?\s*|,\s*(?:you know|i mean|like)\s*(?=,)|\b[A-Za-z]+-\s+(?=\w)",
    re.IGNORECASE,
)
ADDRESS = re.compile(r",?\s+(?:sir|ma'am|miss|mr\.?|mrs\.?|ms\.?)(?=\W*$)", re.IGNORECASE)
OPENING = re.compile(
    r"^(?:(?:okay|ok|all right|alright|right|great|good|perfect|excellent|wonderful|well|and|so|now|then|also|oh|but|"
    r"yeah|yes|no|sure|got it|i see|sorry|hey|hi|hello|thanks|thank you|gotcha|absolutely|sir|ma'am|um|uh|or)"
    r"(?!\w)(?!-)[\s,.-]*)+",
    re.IGNORECASE,
)
TALK = re.compile(
    r"how (?:are|have|is|'s|do) (?:you|things|it|everything|that|we|today)(?: (?:been|doing|going|feel|today))*\W*$|"
    r"(?:any|do you have any|did you have any|have any)(?: other| more)? (?:questions|concerns)|what questions|"
    r".*\b(?:sounds? (?:good|okay)|is that (?:okay|right|correct|fair)|does that|make sense|okay|right|correct|"
    r"remember|can (?:i|you|we)|could (?:i|you|we)|may i|shall we|should we|let me|let's|would you mind|"
    r"do you mind|i'd like|do i|am i|will i|ready|help you|nice to (?:meet|see)|anything else|what else)\b",
    re.IGNORECASE,
)
PERSONS = (  # of whom is spoken, instead of to whom
    (r"\bdo you\b", "does {they}"), (r"\bdon't you\b", "doesn't {they}"), (r"\bare you\b", "is {they}"),
    (r"\baren't you\b", "isn't {they}"), (r"\bwere you\b", "was {they}"), (r"\bhave you\b", "has {they}"),
    (r"\bhaven't you\b", "hasn't {they}"),
    (r"\b((?:did|can|could|would|will|should|had)(?:n't)?) you\b", r"\1 {they}"),
    (r"\byou're\b|\byou are\b", "{they} is"), (r"\byou've\b|\byou have\b", "{they} has"),
    (r"\byou'd\b", "{they} would"), (r"\byou'll\b", "{they} will"), (r"\byou were\b", "{they} was"),
    (r"\byou do\b", "{they} does"), (r"\byou don't\b", "{they} does not"), (r"\byou haven't\b", "{they} has not"),
    (r"\byourself\b", "{themselves}"), (r"\byours\b", "{theirs}"), (r"\byour\b", "{their}"),
    (r"\b(for|to|of|with|on|at|from|about|gives?|gave|bothers?|bothering|hurts?|hurting|brings?|brought|prevents?|"
     r"keeps?|help|helps|helped|make|makes|made|let|tell|told|see|saw) you\b", r"\1 {them}"),
    (r"\byou\b", "{they}"),
)  # fmt: skip
FORMS = {  # they, them, their, theirs, themselves
    "female": ("she", "her", "her", "hers", "herself"),
    "male": ("he", "him", "his", "his", "himself"),
    "": ("the patient", "the patient", "the patient's", "the patient's", "the patient"),
}
WORD = re.compile(r"\d+(?:[.,/]\d+)*|[A-Za-z]+(?:'[a-z]+)?")
WH = re.compile(
    r"(?:what|when|where|which|who|whose|for how|at what|how (?:many|much|long|old|often|far|high|big|bad))\b",
    re.IGNORECASE,
)
SUBJECT = re.compile(
    r"(?:\d+[.)]\s*|[-•*]\s*)?(?:(?:the|this) (?:patient|child|infant|gentleman|woman|man|lady)|patient|pt|s?he|they|"
    r"(?:mr|mrs|ms|miss)\.? \w+)\s+(?:also |currently |further |otherwise |still )?",
    re.IGNORECASE,
)
CLAUSE = re.compile(
    r"[;:]\s|,? (?:but|although|however|while|because|which|who)\s|, (?:and|with|she|he) |"
    r" and (?=(?:is|was|has|had|does|did|denies|denied|states|reports|currently|will|she|he)\b)",
    re.IGNORECASE,
)
TIME = re.compile(r"when|how (?:long|many|much|old|often|far|high)", re.IGNORECASE)
SPOKEN = frozenset(  # words that say nothing, besides those which do not in writing either
    "yeah yes yep no nope okay ok sure right well really just like think know get got go going went um uh oh too very "
    "not being am having us him if but than then also good patient".split()
)
END = re.compile(r"[,.;]\s|[,.;]?$")
COUNTED = re.compile(
    r"\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|twice|once|several|few|many|couple|day|week|month|year|hour|"
    r"minute|night|morning|evening|yesterday|today|last|since|daily|weekly|always|never|half|january|february|march|"
    r"april|may|june|july|august|september|october|november|december)",
    re.IGNORECASE,
)
UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = {name: 10 * n for n, name in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said before somebody else did."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A question that a doctor asked, and what was answered."""

    question: str
    answer: str


def turns(dialogue: str) -> list[Turn]:
    """The turns of a transcript, in which each line begins with its speaker: "Doctor: ..." or "[doctor] ...".

    >>> turns("Doctor: Any pain?\\nPatient: No.\\nNot now.")
    [Turn(speaker='doctor', text='Any pain?'), Turn(speaker='patient', text='No. Not now.')]
    """
    found: list[Turn] = []
    for line in dialogue.splitlines():
        named = TURN.match(line)
        speaker = (named[1] or named[2]).lower() if named else found[-1].speaker if found else ""
        text = _plain(line[named.end() :] if named else line)
        if found and found[-1].speaker == speaker:
            found[-1] = Turn(speaker, f"{found[-1].text} {text}".strip())
        else:
            found.append(Turn(speaker, text))
    return found


def _plain(text: str) -> str:
    """What was said without hesitation, and without the blanks that some transcripts have before signs."""
    text = re.sub(r"\s+([?.,!;])", r"\1", HESITATION.sub("", text))
    return " ".join(re.sub(r"\s+(n't|'\w+)\b", r"\1", text).split())


def spoken(dialogue: str) -> Iterator[Spoken]:
    """The questions of a transcript that ask for something, each with what was answered."""
    said = turns(dialogue)
    for place, turn in enumerate(said[:-1]):
        if turn.speaker not in DOCTORS or said[place + 1].speaker in DOCTORS:
            continue
        *_, last = SAID.findall(turn.text) or [""]
        question = ADDRESS.sub("", OPENING.sub("", last.strip()))
        fewest, most = QUESTION_WORDS
        if not question.endswith("?") or not fewest <= len(question.split()) <= most or TALK.match(question):
            continue
        answer = said[place + 1].text
        if answer.split():
            yield Spoken(question, " ".join(answer.split()[:ANSWER_WORDS]))


def of_whom(question: str, gender: str) -> str:
    """A question to somebody, as one about them.

    >>> of_whom("have you been taking your pills?", "female"), of_whom("What brings you in?", "")
    ('Has she been taking her pills?', 'What brings the patient in?')
    """
    they, them, their, theirs, themselves = FORMS[gender]
    for pattern, words in PERSONS:
        named = words.format(they=they, them=them, their=their, theirs=theirs, themselves=themselves)
        question = re.sub(pattern, named, question, flags=re.IGNORECASE)
    return question[:1].upper() + question[1:]


def gender_of(text: str) -> str:
    """Of the patient of a note: `male`, `female`, or nothing if it does not say."""
    male, female = (len(words.findall(text.lower())) for words in (MALE, FEMALE))
    return "" if male == female else "male" if male > female else "female"


def visit(note: Document, dialogue: str, scores: Scores) -> Report:
    """The questions of a visit about its note, of those that one sentence of it clearly answers.

    Args:
        note: that records the visit.
        dialogue: the transcript, see `turns`.
        scores: of a query with each of several passages, such as a ranker's.
    """
    told = [span for span in sentences(note.text) if len(WORD.findall(span.of(note.text))) > 1]
    gender = gender_of(note.text)
    asked: dict[str, Asked] = {}
    for one in spoken(dialogue) if len(told) else ():
        found = scores(f"{one.question} {one.answer}", [span.of(note.text) for span in told])
        best, *others = sorted(found, reverse=True)
        if best < SURE or (others and best < others[0] + CLEAR):
            continue
        answer = answering(note.text, told[list(found).index(best)], one)
        question = of_whom(one.question, gender)
        if answer is not None and question.lower() not in asked:
            asked[question.lower()] = Asked(f"{note.id} visit {len(asked)}", question, (answer,))
    return Report(note, tuple(asked.values()))


def answering(text: str, sentence: Span, one: Spoken) -> Span | None:
    """The words of a sentence that answer; None if it has none of those that were said."""
    words = [Span(match.start(), match.end()) for match in WORD.finditer(text, sentence.begin, sentence.end)]
    stems = [_stem(word.of(text)) for word in words]
    asked, told = _stems(one.question), _stems(one.answer)
    new = [place for place, stem in enumerate(stems) if stem in told - asked]
    if TIME.match(one.question) and not any(COUNTED.match(words[place].of(text)) for place in new):
        return None  # a time or a number was asked for
    if WH.match(one.question) and new and new[-1] - new[0] < SHORT_WORDS:
        return Span(words[new[0]].begin, words[new[-1]].end)
    matched = [place for place, stem in enumerate(stems) if stem in told | asked]
    if not matched:
        return None
    clause = _clause(text, sentence, Span(words[matched[0]].begin, words[matched[-1]].end))
    return clause if len(WORD.findall(clause.of(text))) <= LONG_WORDS else None


def _clause(text: str, sentence: Span, matched: Span) -> Span:
    """The clause of a sentence in which words stand, without its subject, to the end of the last of them."""
    begin, end = sentence.begin, sentence.end
    for cut in CLAUSE.finditer(text, sentence.begin, sentence.end):
        if cut.end() <= matched.begin:
            begin = cut.end()
        elif cut.start() >= matched.end:
            end = cut.start()
            break
    subject = SUBJECT.match(text, begin, end)
    if subject and subject.end() <= matched.begin:
        begin = subject.end()
    stop = END.search(text, matched.end, end)
    return Span(begin, stop.start() if stop else end).trimmed(text)


def _stems(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(_stem, _numbers(text))))


def _stem(word: str) -> str:
    """A word that says something, without its ending; nothing for others."""
    return "" if word.lower() in stopwords() | SPOKEN else stem(word)


def _numbers(text: str) -> Iterator[str]:
    """The words of a text, with numbers in digits: what is said as twenty six is written as 26."""
    words = [match.lower() for match in WORD.findall(text.replace("-", " "))]
    place = 0
    while place < len(words):
        word = words[place]
        if word in TENS:
            more = words[place + 1] if place + 1 < len(words) else ""
            ones = UNITS.index(more) if more in UNITS[1:10] else 0
            place += bool(ones)
            yield str(TENS[word] + ones)
        elif word in UNITS:
            yield str(UNITS.index(word))
            yield word
        else:
            yield word
        place += 1
