"""Questions about notes, from the visits that they record: spoken questions, and the words of the note that answer.

Readers of a chart often use other words than its author. In the transcript of a visit, doctors ask in plain words and
patients answer, and the note says the same in clinical language: "have you been feeling winded?", "denies dyspnea". So
a question of the transcript becomes one about the note ("Has she been feeling winded?"). A ranker finds the sentence of
the note that matches the question and its answer, and rules cut the sentence down to the words that answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capr.deprecation import renamed_attributes
from capr.documents import Document, Span
from capr.segment import sentences
from capr.supervise.questions import FEMALE, MALE
from capr.supervise.reports import Report, ReportQuestion
from capr.text.stemming import stem
from capr.text.stopwords import stopwords

Scores = Callable[[str, Sequence[str]], Sequence[float]]
MIN_LEAD = 1.0  # of the best sentence over the next
MIN_SCORE = -1.0  # of the best sentence
QUESTION_WORDS = 4, 30  # the minimum and the maximum
ANSWER_WORDS = 60  # of the patient's reply to use
SHORT_WORDS, LONG_WORDS = 14, 24  # the maximum of an answer to what, when or how many, and of any other
DOCTORS = ("doctor", "guest_clinician", "guest clinician", "clinician", "nurse", "physician")
TURN = re.compile(r"^\s*(?:\[([A-Za-z][\w -]*)\]|([A-Z][\w ]{0,30}?)\s*:)\s*")
SPOKEN_SENTENCE = re.compile(r"[^.?!]+[.?!]*")
HESITATION = re.compile(
    r"(?<!\w)(?:um+|uh+|er|hmm+|mm-hmm)\b\s*,?\s*|,\s*(?:you know|i mean|like)\s*(?=,)|\b[A-Za-z]+-\s+(?=\w)",
    re.IGNORECASE,
)
FORM_OF_ADDRESS = re.compile(r",?\s+(?:sir|ma'am|miss|mr\.?|mrs\.?|ms\.?)(?=\W*$)", re.IGNORECASE)
OPENING = re.compile(
    r"^(?:(?:okay|ok|all right|alright|right|great|good|perfect|excellent|wonderful|well|and|so|now|then|also|oh|but|"
    r"yeah|yes|no|sure|got it|i see|sorry|hey|hi|hello|thanks|thank you|gotcha|absolutely|sir|ma'am|um|uh|or)"
    r"(?!\w)(?!-)[\s,.-]*)+",
    re.IGNORECASE,
)
SMALL_TALK = re.compile(
    r"how (?:are|have|is|'s|do) (?:you|things|it|everything|that|we|today)(?: (?:been|doing|going|feel|today))*\W*$|"
    r"(?:any|do you have any|did you have any|have any)(?: other| more)? (?:questions|concerns)|what questions|"
    r".*\b(?:sounds? (?:good|okay)|is that (?:okay|right|correct|fair)|does that|make sense|okay|right|correct|"
    r"remember|can (?:i|you|we)|could (?:i|you|we)|may i|shall we|should we|let me|let's|would you mind|"
    r"do you mind|i'd like|do i|am i|will i|ready|help you|nice to (?:meet|see)|anything else|what else)\b",
    re.IGNORECASE,
)
PERSON_RULES = (  # from the second person to the third
    (r"\bdo you\b", "does {they}"),
    (r"\bdon't you\b", "doesn't {they}"),
    (r"\bare you\b", "is {they}"),
    (r"\baren't you\b", "isn't {they}"),
    (r"\bwere you\b", "was {they}"),
    (r"\bhave you\b", "has {they}"),
    (r"\bhaven't you\b", "hasn't {they}"),
    (r"\b((?:did|can|could|would|will|should|had)(?:n't)?) you\b", r"\1 {they}"),
    (r"\byou're\b|\byou are\b", "{they} is"),
    (r"\byou've\b|\byou have\b", "{they} has"),
    (r"\byou'd\b", "{they} would"),
    (r"\byou'll\b", "{they} will"),
    (r"\byou were\b", "{they} was"),
    (r"\byou do\b", "{they} does"),
    (r"\byou don't\b", "{they} does not"),
    (r"\byou haven't\b", "{they} has not"),
    (r"\byourself\b", "{themselves}"),
    (r"\byours\b", "{theirs}"),
    (r"\byour\b", "{their}"),
    (
        r"\b(for|to|of|with|on|at|from|about|gives?|gave|bothers?|bothering|hurts?|hurting|brings?|brought|prevents?|"
        r"keeps?|help|helps|helped|make|makes|made|let|tell|told|see|saw) you\b",
        r"\1 {them}",
    ),
    (r"\byou\b", "{they}"),
)
PRONOUN_FORMS = {  # they, them, their, theirs, themselves
    "female": ("she", "her", "her", "hers", "herself"),
    "male": ("he", "him", "his", "his", "himself"),
    "": ("the patient", "the patient", "the patient's", "the patient's", "the patient"),
}
WORD = re.compile(r"\d+(?:[.,/]\d+)*|[A-Za-z]+(?:'[a-z]+)?")
WH_WORD = re.compile(
    r"(?:what|when|where|which|who|whose|for how|at what|how (?:many|much|long|old|often|far|high|big|bad))\b",
    re.IGNORECASE,
)
SUBJECT = re.compile(
    r"(?:\d+[.)]\s*|[-•*]\s*)?(?:(?:the|this) (?:patient|child|infant|gentleman|woman|man|lady)|patient|pt|s?he|they|"
    r"(?:mr|mrs|ms|miss)\.? \w+)\s+(?:also |currently |further |otherwise |still )?",
    re.IGNORECASE,
)
CLAUSE_BREAK = re.compile(
    r"[;:]\s|,? (?:but|although|however|while|because|which|who)\s|, (?:and|with|she|he) |"
    r" and (?=(?:is|was|has|had|does|did|denies|denied|states|reports|currently|will|she|he)\b)",
    re.IGNORECASE,
)
TIME_OR_NUMBER = re.compile(r"when|how (?:long|many|much|old|often|far|high)", re.IGNORECASE)
FILLER_WORDS = frozenset(  # words without content in speech, besides the stop words
    "yeah yes yep no nope okay ok sure right well really just like think know get got go going went um uh oh too very "
    "not being am having us him if but than then also good patient".split()
)
CLAUSE_END = re.compile(r"[,.;]\s|[,.;]?$")
QUANTITY = re.compile(
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
    """What one speaker said before the next one spoke."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A doctor's question, and the patient's answer."""

    question: str
    answer: str


def split_turns(dialogue: str) -> list[Turn]:
    """Split a transcript into turns. Each line begins with its speaker: "Doctor: ..." or "[doctor] ...".

    >>> split_turns("Doctor: Any pain?\\nPatient: No.\\nNot now.")
    [Turn(speaker='doctor', text='Any pain?'), Turn(speaker='patient', text='No. Not now.')]
    """
    turns: list[Turn] = []
    for line in dialogue.splitlines():
        speaker_match = TURN.match(line)
        speaker = (
            (speaker_match[1] or speaker_match[2]).lower() if speaker_match else turns[-1].speaker if turns else ""
        )
        text = _clean_speech(line[speaker_match.end() :] if speaker_match else line)
        if turns and turns[-1].speaker == speaker:
            turns[-1] = Turn(speaker, f"{turns[-1].text} {text}".strip())
        else:
            turns.append(Turn(speaker, text))
    return turns


def _clean_speech(text: str) -> str:
    """Remove hesitations, and the blanks that some transcripts have before signs."""
    text = re.sub(r"\s+([?.,!;])", r"\1", HESITATION.sub("", text))
    return " ".join(re.sub(r"\s+(n't|'\w+)\b", r"\1", text).split())


def find_exchanges(dialogue: str) -> Iterator[Exchange]:
    """Yield the questions of a transcript that ask for information, each with its answer."""
    turns = split_turns(dialogue)
    for position, turn in enumerate(turns[:-1]):
        if turn.speaker not in DOCTORS or turns[position + 1].speaker in DOCTORS:
            continue
        *_, last_sentence = SPOKEN_SENTENCE.findall(turn.text) or [""]
        question = FORM_OF_ADDRESS.sub("", OPENING.sub("", last_sentence.strip()))
        min_words, max_words = QUESTION_WORDS
        if (
            not question.endswith("?")
            or not min_words <= len(question.split()) <= max_words
            or SMALL_TALK.match(question)
        ):
            continue
        answer = turns[position + 1].text
        if answer.split():
            yield Exchange(question, " ".join(answer.split()[:ANSWER_WORDS]))


def about_patient(question: str, gender: str) -> str:
    """Turn a question to the patient into one about the patient.

    >>> about_patient("have you been taking your pills?", "female"), about_patient("What brings you in?", "")
    ('Has she been taking her pills?', 'What brings the patient in?')
    """
    they, them, their, theirs, themselves = PRONOUN_FORMS[gender]
    for pattern, template in PERSON_RULES:
        replacement = template.format(they=they, them=them, their=their, theirs=theirs, themselves=themselves)
        question = re.sub(pattern, replacement, question, flags=re.IGNORECASE)
    return question[:1].upper() + question[1:]


def find_gender(text: str) -> str:
    """Return the gender of the patient of a note: `male`, `female`, or an empty string if the note does not show it."""
    male, female = (len(words.findall(text.lower())) for words in (MALE, FEMALE))
    return "" if male == female else "male" if male > female else "female"


def report_of_visit(note: Document, dialogue: str, scores: Scores) -> Report:
    """Make questions about a note from its visit: those that one sentence of the note clearly answers.

    Args:
        note: the note that records the visit.
        dialogue: the transcript; see `split_turns`.
        scores: scores a query with each of several passages, as a ranker does.
    """
    note_sentences = [span for span in sentences(note.text) if len(WORD.findall(span.of(note.text))) > 1]
    gender = find_gender(note.text)
    questions: dict[str, ReportQuestion] = {}
    for exchange in find_exchanges(dialogue) if len(note_sentences) else ():
        sentence_scores = scores(
            f"{exchange.question} {exchange.answer}", [span.of(note.text) for span in note_sentences]
        )
        best, *other_scores = sorted(sentence_scores, reverse=True)
        if best < MIN_SCORE or (other_scores and best < other_scores[0] + MIN_LEAD):
            continue
        answer = find_answer(note.text, note_sentences[list(sentence_scores).index(best)], exchange)
        question = about_patient(exchange.question, gender)
        if answer is not None and question.lower() not in questions:
            questions[question.lower()] = ReportQuestion(f"{note.id} visit {len(questions)}", question, (answer,))
    return Report(note, tuple(questions.values()))


def find_answer(text: str, sentence: Span, exchange: Exchange) -> Span | None:
    """Return the words of a sentence that answer; None if it has no words of the question or the answer."""
    words = [Span(match.start(), match.end()) for match in WORD.finditer(text, sentence.begin, sentence.end)]
    stems = [_stem(word.of(text)) for word in words]
    question_stems, answer_stems = _stems(exchange.question), _stems(exchange.answer)
    new_positions = [position for position, word_stem in enumerate(stems) if word_stem in answer_stems - question_stems]
    if TIME_OR_NUMBER.match(exchange.question) and not any(
        QUANTITY.match(words[position].of(text)) for position in new_positions
    ):
        return None  # the question asks for a time or a number
    if WH_WORD.match(exchange.question) and new_positions and new_positions[-1] - new_positions[0] < SHORT_WORDS:
        return Span(words[new_positions[0]].begin, words[new_positions[-1]].end)
    matched_positions = [
        position for position, word_stem in enumerate(stems) if word_stem in answer_stems | question_stems
    ]
    if not matched_positions:
        return None
    clause = _clause_around(text, sentence, Span(words[matched_positions[0]].begin, words[matched_positions[-1]].end))
    return clause if len(WORD.findall(clause.of(text))) <= LONG_WORDS else None


def _clause_around(text: str, sentence: Span, matched: Span) -> Span:
    """Return the clause around the matched words, without its subject, up to the end of the last one."""
    begin, end = sentence.begin, sentence.end
    for clause_break in CLAUSE_BREAK.finditer(text, sentence.begin, sentence.end):
        if clause_break.end() <= matched.begin:
            begin = clause_break.end()
        elif clause_break.start() >= matched.end:
            end = clause_break.start()
            break
    subject = SUBJECT.match(text, begin, end)
    if subject and subject.end() <= matched.begin:
        begin = subject.end()
    clause_end = CLAUSE_END.search(text, matched.end, end)
    return Span(begin, clause_end.start() if clause_end else end).trimmed(text)


def _stems(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(_stem, _words_with_digits(text))))


def _stem(word: str) -> str:
    """Return the stem of a content word; an empty string for other words."""
    return "" if word.lower() in stopwords() | FILLER_WORDS else stem(word)


def _words_with_digits(text: str) -> Iterator[str]:
    """Yield the words of a text, with numbers in digits: notes write a spoken twenty six as 26."""
    words = [match.lower() for match in WORD.findall(text.replace("-", " "))]
    position = 0
    while position < len(words):
        word = words[position]
        if word in TENS:
            next_word = words[position + 1] if position + 1 < len(words) else ""
            ones = UNITS.index(next_word) if next_word in UNITS[1:10] else 0
            position += bool(ones)
            yield str(TENS[word] + ones)
        elif word in UNITS:
            yield str(UNITS.index(word))
            yield word
        else:
            yield word
        position += 1


__getattr__ = renamed_attributes(__name__, {"visit": "report_of_visit"})
