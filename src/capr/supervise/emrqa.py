"""emrQA's notes as reports: filtering into SQuAD's form, sections, and the split into training and test notes.

References: Yue et al., Clinical Reading Comprehension: A Thorough Analysis of the emrQA Dataset, 2020 (CliniRC), which
defines the filter; Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024
(PAR-emrQA), which locates answers better and cuts notes at their headings.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from capr.documents import Annotation, CaprError, Document, Span
from capr.supervise.reports import Report, ReportQuestion, sample_questions

PARTS = {"medication": 0.2, "relations": 0.05}  # by name: the share of its questions to train on
OCCURRENCES = ("nearest", "first")
MAX_WORDS = 20  # an answer has fewer
HTML_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", '"'), ("&nbsp;", " "), ("&apos;", "'"))
BLANK_BEFORE = re.compile(r"\s([?.!',)\"](?:\s|$))")
REPEATED_SIGN = re.compile(r"[?.!,]+(?=[?.!,])")
HEADING = re.compile(r"(?:\d+\s*[.)]\s*)?[A-Z][A-Za-z\s()]*:")
SENTENCE_END = re.compile(r"[^.A-Z]{5}\.\s*$")
NEW_SENTENCE = re.compile(r"(?:\d+\s*[).]\s*)?[A-Z]")
CAPITAL_HEADING = re.compile(r"[A-Z\s]*:")


def is_note(document: Document) -> bool:
    """Tell whether a document with questions comes from emrQA: only its answers have evidence."""
    values = (annotation.value for annotation in document.annotations if annotation.kind == "question")
    return any("template" in value or any("evidence" in answer for answer in _answers(value)) for value in values)


def report(document: Document, occurrence: str = "nearest") -> Report:
    """Convert a note of emrQA to SQuAD's form.

    The document of the report has the *normalised* text, on which the published figures are measured: `prune` joins
    lines, collapses blanks and cleans signs. Answers index that text, not the original note. An answer is the line of
    its evidence. The filter drops answers of several entities (`complex`), answers of 20 words or more, and questions
    without an answer. Each paraphrase becomes its own question. Annotations mark sections, which begin at headings.

    Args:
        document: a document that `capr.read` yields for emrQA's data.json.
        occurrence: which position to take if the line occurs several times: the `nearest` to the evidence (PAR-emrQA),
            or the `first` (CliniRC, which also rejects an answer at the very beginning).
    """
    if occurrence not in OCCURRENCES:
        raise CaprError(f"{occurrence!r} is not an occurrence. Fix: use one of {', '.join(OCCURRENCES)}.")
    lines = document.text.splitlines(keepends=True)
    text = prune(document.text)
    questions = []
    for number, annotation in enumerate(document.annotated("question"), 1):
        value = annotation.value
        candidates = (_locate(answer, text, lines, occurrence) for answer in _answers(value))
        spans = tuple(dict.fromkeys(span for span in candidates if span))
        if spans:
            wordings = (value["question"], *value.get("paraphrases", ()))
            questions += [
                ReportQuestion(f"{document.id}/{number}.{i}", words, spans) for i, words in enumerate(wordings, 1)
            ]
    sections = tuple(_sections(document.title, text, lines))
    return Report(Document(document.id, text, document.title, document.metadata, sections), tuple(questions))


def prune(text: str) -> str:
    """Convert a text to CliniRC's normal form.

    >>> prune('Aspirin &lt; 81_mg  daily . "Rest" , fluids ; sleep !')
    'Aspirin < 81 mg daily. Rest, fluids ; sleep!'
    """
    text = " ".join(text.split()).replace("_", " ")
    for entity, sign in HTML_ENTITIES:
        text = text.replace(entity, sign)
    text = BLANK_BEFORE.sub(r"\1", text.replace('"', ""))
    return " ".join(REPEATED_SIGN.sub("", text).split())


def _answers(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """List the answers of a question, including those that the reader of the format could not place."""
    return [*value["answers"], *(answer for answer in value.get("unplaced", ()) if isinstance(answer, dict))]


def _locate(answer: Mapping[str, Any], text: str, lines: Sequence[str], occurrence: str) -> Span | None:
    """Find the evidence in the normalised text, or as many of its first words as the text contains."""
    evidence, line_number = answer.get("evidence"), answer.get("evidence_start")
    if answer.get("answer_entity_type") == "complex" or not isinstance(evidence, str):
        return None
    words = prune(evidence).rstrip(",.?!- ")
    while words and words not in text:
        words = " ".join(words.split()[:-1])
    if not words or len(words.split()) >= MAX_WORDS:
        return None
    begin = text.index(words)
    if occurrence == "nearest":
        chars_before = sum(map(len, lines[:line_number])) if isinstance(line_number, int) else 0
        expected = chars_before / max(1, sum(map(len, lines)))
        begin = min(_occurrences(text, words), key=lambda position: abs(position / len(text) - expected))
    elif begin == 0:
        return None
    return Span(begin, begin + len(words))


def _occurrences(text: str, words: str) -> Iterator[int]:
    begin = text.find(words)
    while begin >= 0:
        yield begin
        begin = text.find(words, begin + 1)


def _sections(part: str, text: str, lines: Sequence[str]) -> Iterator[Annotation]:
    """Yield the sections of the normalised text: each runs from a group of lines with a heading to the next."""
    headings: list[tuple[int, str]] = []
    position = 0
    for group in _line_groups(part, lines):
        words = prune(group)
        begin = text.find(words, position) if words else -1
        if begin >= 0:
            position = begin + len(words)
            if heading := HEADING.match(group):
                headings.append((begin, prune(heading[0])))
    for (begin, name), (end, _) in pairwise([*headings, (len(text), "")]):
        value: dict[str, Any] = {"heading": name.rstrip(": ")}
        if text.startswith(name, begin):
            value["heading_end"] = begin + len(name)
        yield Annotation("section", Span(begin, end), value)


def _line_groups(part: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield groups of lines that belong together.

    A group ends where a sentence surely ends, or before a line that looks like a heading.
    """
    group = ""
    for line, following in pairwise([*lines, ""]):
        group += line
        if part == "relations":
            group_ends = line.rstrip("\n").rstrip(" ").endswith(" .") or following.rstrip().endswith(" :")
        else:
            group_ends = bool(SENTENCE_END.search(line) and NEW_SENTENCE.match(following))
            group_ends = group_ends or CAPITAL_HEADING.match(following) is not None
        if group_ends:
            yield group
            group = ""
    if group:
        yield group


class NoteSplit(NamedTuple):
    """The notes of one part of emrQA, split 7 : 1 : 2."""

    train: list[Report]
    validation: list[Report]
    test: list[Report]


def split(reports: Iterable[Report], seed: int = 55) -> dict[str, NoteSplit]:
    """Split the notes of each part at random, exactly as PAR-emrQA's scripts do with that seed.

    Between the parts, those scripts draw a sample of training questions and discard it. This function draws it as well,
    since it decides how the notes of the second part are split. (`sample_questions` draws the sample that they keep.)
    """
    rng = random.Random(seed)
    notes: dict[str, list[Report]] = {part: [] for part in PARTS}
    for report in reports:
        if report.document.title not in notes:
            fix = f"pass notes titled {' or '.join(PARTS)}, as in emrQA's data.json"
            raise CaprError(f"{report.document.id!r} is not a note of emrQA. Fix: {fix}.")
        notes[report.document.title].append(report)
    splits = {}
    for part, part_notes in notes.items():
        order = rng.sample(range(len(part_notes)), len(part_notes))
        shuffled = [part_notes[index] for index in order]
        train_size, validation_size = int(0.7 * len(shuffled)), int(0.1 * len(shuffled))
        splits[part] = NoteSplit(
            shuffled[:train_size],
            shuffled[train_size : train_size + validation_size],
            shuffled[train_size + validation_size :],
        )
        sample_questions(splits[part].train, PARTS[part], rng)
    return splits
