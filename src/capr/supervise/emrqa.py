"""emrQA's notes as reports: its filtering to SQuAD's form, its sections, and its split into notes to train and test on.

References: Yue et al., Clinical Reading Comprehension: A Thorough Analysis of the emrQA Dataset, 2020 (CliniRC), which
filters; Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024 (PAR-emrQA),
which places answers better and cuts notes at their headings.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from capr.documents import Annotation, CaprError, Document, Span
from capr.supervise.reports import Asked, Report, sampled

PARTS = {"medication": 0.2, "relations": 0.05}  # and the share of its questions that is trained on
OCCURRENCES = ("nearest", "first")
LONGEST = 20  # words; an answer has fewer
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", '"'), ("&nbsp;", " "), ("&apos;", "'"))
BLANK_BEFORE = re.compile(r"\s([?.!',)\"](?:\s|$))")
REPEATED = re.compile(r"[?.!,]+(?=[?.!,])")
HEADING = re.compile(r"(?:\d+\s*[.)]\s*)?[A-Z][A-Za-z\s()]*:")
SENTENCE_END = re.compile(r"[^.A-Z]{5}\.\s*$")
NEW_SENTENCE = re.compile(r"(?:\d+\s*[).]\s*)?[A-Z]")
CAPITAL_HEADING = re.compile(r"[A-Z\s]*:")


def is_note(document: Document) -> bool:
    """Whether a document with questions is emrQA's: only there answers have evidence."""
    values = (annotation.value for annotation in document.annotations if annotation.kind == "question")
    return any("template" in value or any("evidence" in answer for answer in _answers(value)) for value in values)


def report(document: Document, occurrence: str = "nearest") -> Report:
    """A note of emrQA in SQuAD's form.

    The report's document has the *normalised* text, in which the published figures are measured: lines are joined,
    blanks collapsed, signs cleaned (`prune`). Answers index that text, not the note as it was. An answer is
    the line of its evidence; answers of several entities (`complex`) and of 20 words or more are left out, and so are
    questions without an answer. Each paraphrase is a question of its own. Sections are marked where a heading begins.

    Args:
        document: as `capr.read` gives it from emrQA's data.json.
        occurrence: which place counts where the line stands several times: the `nearest` to where the evidence was
            (PAR-emrQA), or the `first` (CliniRC, which also refuses an answer at the very beginning).
    """
    if occurrence not in OCCURRENCES:
        raise CaprError(f"there is no occurrence {occurrence!r}. Fix: use one of {', '.join(OCCURRENCES)}.")
    lines = document.text.splitlines(keepends=True)
    text = prune(document.text)
    questions = []
    for number, annotation in enumerate(document.annotated("question"), 1):
        value = annotation.value
        located = (_locate(answer, text, lines, occurrence) for answer in _answers(value))
        spans = tuple(dict.fromkeys(span for span in located if span))
        if spans:
            wordings = (value["question"], *value.get("paraphrases", ()))
            questions += [Asked(f"{document.id}/{number}.{i}", words, spans) for i, words in enumerate(wordings, 1)]
    marked = tuple(_sections(document.title, text, lines))
    return Report(Document(document.id, text, document.title, document.metadata, marked), tuple(questions))


def prune(text: str) -> str:
    """CliniRC's normal form of a text.

    >>> prune('Aspirin &lt; 81_mg  daily . "Rest" , fluids ; sleep !')
    'Aspirin < 81 mg daily. Rest, fluids ; sleep!'
    """
    text = " ".join(text.split()).replace("_", " ")
    for entity, sign in ENTITIES:
        text = text.replace(entity, sign)
    text = BLANK_BEFORE.sub(r"\1", text.replace('"', ""))
    return " ".join(REPEATED.sub("", text).split())


def _answers(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The answers of a question, those included that the reader of the format could not place."""
    return [*value["answers"], *(answer for answer in value.get("unplaced", ()) if isinstance(answer, dict))]


def _locate(answer: Mapping[str, Any], text: str, lines: Sequence[str], occurrence: str) -> Span | None:
    """Where the evidence stands in the normalised text, or as many of its first words as stand there."""
    evidence, line = answer.get("evidence"), answer.get("evidence_start")
    if answer.get("answer_entity_type") == "complex" or not isinstance(evidence, str):
        return None
    words = prune(evidence).rstrip(",.?!- ")
    while words and words not in text:
        words = " ".join(words.split()[:-1])
    if not words or len(words.split()) >= LONGEST:
        return None
    begin = text.index(words)
    if occurrence == "nearest":
        ahead = sum(map(len, lines[:line])) if isinstance(line, int) else 0
        wanted = ahead / max(1, sum(map(len, lines)))
        begin = min(_places(text, words), key=lambda place: abs(place / len(text) - wanted))
    elif begin == 0:
        return None
    return Span(begin, begin + len(words))


def _places(text: str, words: str) -> Iterator[int]:
    begin = text.find(words)
    while begin >= 0:
        yield begin
        begin = text.find(words, begin + 1)


def _sections(part: str, text: str, lines: Sequence[str]) -> Iterator[Annotation]:
    """The sections of the normalised text: from a group of lines with a heading to the next."""
    found: list[tuple[int, str]] = []
    position = 0
    for group in _groups(part, lines):
        words = prune(group)
        begin = text.find(words, position) if words else -1
        if begin >= 0:
            position = begin + len(words)
            if heading := HEADING.match(group):
                found.append((begin, prune(heading[0])))
    for (begin, name), (end, _) in pairwise([*found, (len(text), "")]):
        value: dict[str, Any] = {"heading": name.rstrip(": ")}
        if text.startswith(name, begin):
            value["heading_end"] = begin + len(name)
        yield Annotation("section", Span(begin, end), value)


def _groups(part: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines that belong together: they end where a sentence surely does, and begin at what looks like a heading."""
    group = ""
    for line, following in pairwise([*lines, ""]):
        group += line
        if part == "relations":
            ends = line.rstrip("\n").rstrip(" ").endswith(" .") or following.rstrip().endswith(" :")
        else:
            ends = bool(SENTENCE_END.search(line) and NEW_SENTENCE.match(following))
            ends = ends or CAPITAL_HEADING.match(following) is not None
        if ends:
            yield group
            group = ""
    if group:
        yield group


class Parts(NamedTuple):
    """The notes of one of emrQA's parts, 7 : 1 : 2."""

    train: list[Report]
    validation: list[Report]
    test: list[Report]


def split(reports: Iterable[Report], seed: int = 55) -> dict[str, Parts]:
    """The notes of each part at random, the same as PAR-emrQA's scripts draw with that seed.

    Between the parts those scripts draw a sample of the training questions that they do not keep, so this does, too:
    it decides which notes of the second part are drawn. (`sampled` draws the sample that is kept.)
    """
    draw = random.Random(seed)
    notes: dict[str, list[Report]] = {part: [] for part in PARTS}
    for report in reports:
        if report.document.title not in notes:
            fix = f"give notes of {' and '.join(PARTS)}, as emrQA's data.json titles them"
            raise CaprError(f"{report.document.id!r} is not of emrQA. Fix: {fix}.")
        notes[report.document.title].append(report)
    found = {}
    for part, listed in notes.items():
        order = draw.sample(range(len(listed)), len(listed))
        drawn = [listed[i] for i in order]
        train, validation = int(0.7 * len(drawn)), int(0.1 * len(drawn))
        found[part] = Parts(drawn[:train], drawn[train : train + validation], drawn[train + validation :])
        sampled(found[part].train, PARTS[part], draw)
    return found
