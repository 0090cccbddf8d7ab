"""`capr ask`: the exact words that answer a question, or that there are none."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from capr.annotate import Vocabulary
from capr.cli import inputs
from capr.documents import CaprError, Span
from capr.index import database
from capr.index.digest import as_text
from capr.search import Answer, AnswerReader, Answers, GenerativeReader, Library, Place, ask
from capr.search.asking import PASSAGES, Options, checked
from capr.search.models import answer_reader

BLANKS = re.compile(r"\s+")
READING = 15_000  # bytes a second on two cores
ASIDE = 250  # characters of a sentence before and after the answer that are shown
LONGEST = 300  # characters of an answer that are
PLACES = 5  # other places that are
LEAST = 0.1  # confidence of answers below the threshold that are shown; of less sure ones hardly any is right
LABELS = {"family": "family history"}  # of properties that have another name than people use


def command(
    source: Annotated[str, typer.Argument(metavar="LIBRARY|FILE", help="A library, a file, a folder, or -.")],
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="In plain words.")],
    document: Annotated[str | None, typer.Option("--document", metavar="ID", help="Read only this one.")] = None,
    patient: Annotated[str, typer.Option("--patient", metavar="P", help="The same as --filter patient=P.")] = "",
    filter: inputs.Filter = None,
    top: Annotated[int, typer.Option("--top", help="Answers to show, at most.")] = 3,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Confidence from which on an answer counts, 0 to 1.")
    ] = None,
    passages: Annotated[
        int, typer.Option("--passages", help="Passages of a library to read, at most, unless --document names one.")
    ] = PASSAGES,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="FOLDER", help="Reads the answers, if not the one that ships.")
    ] = None,
    generative: Annotated[
        str,
        typer.Option(
            "--generative",
            metavar="URL",
            help="Let a language model read the best passages, too: text is SENT to this server.",
        ),
    ] = "",
    generative_model: Annotated[
        str, typer.Option("--generative-model", metavar="NAME", help="As that server calls it.")
    ] = "",
    encoder: inputs.Encoder = None,
    ranker: Annotated[
        str | None,
        typer.Option("--ranker", metavar="FOLDER", help="Re-ranks the best passages; none for none."),
    ] = None,
    vocabulary: inputs.VocabularyTables = None,
    format: inputs.Format = None,
    column: inputs.Column = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with answers.")] = False,
) -> None:
    """Read the exact words that answer a question out of a report, a patient's notes, or a whole library.

    Answers show where they stand, how sure that is, and whether they are negated, in the past or a relative's. If no
    answer is as sure as the threshold, the report does not say. A file is read from its first passage to its last, and
    so is a --document; of a library, the passages that a search finds first.

    Example: capr ask library "What dose of vancomycin was she discharged on?" --patient p03
    """
    words = checked(" ".join(question))
    options = Options(top, threshold, passages)
    conditions = [*(filter or ()), *([f"patient={patient}"] if patient else ())]
    model = _model(reader, generative, generative_model, threshold)
    tables = Vocabulary.load(*vocabulary or ())
    if (Path(source) / database.FILE).is_file():
        with Library(source, encoder=encoder, ranker=ranker, vocabulary=tables) as kept:
            answers = kept.ask(words, document, filters=conditions, reader=model, **asdict(options))
        _print(answers, as_json)
        return
    if conditions:
        fix = "put it into one (capr index), or name a document with --document"
        raise CaprError(f"{source} is no library, and only a library can be filtered. Fix: {fix}.")
    read = inputs.Documents([source], format, column, False, False, READING)
    answers = ask(
        read.documents(), words, document=document, top=top, reader=model, threshold=threshold, vocabulary=tables
    )
    if read.reading.documents:
        _print(answers, as_json)
    read.finish()
    if not read.reading.documents:
        raise CaprError(f"there is no document in {source}. Fix: name a file or folder that has one.")


def _model(folder: str | None, url: str, name: str, threshold: float | None) -> AnswerReader:
    """The reader, with a generative one before it if that is wanted."""
    if bool(url) != bool(name):
        missing, there = ("--generative", "--generative-model") if name else ("--generative-model", "--generative")
        raise CaprError(f"there is a {there}, but no {missing}. Fix: write both, or neither.")
    reader = answer_reader(folder)
    return GenerativeReader(reader, url, name, threshold=threshold) if url else reader


def _print(answers: Answers, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(as_text(answers.as_json()) + "\n")
        return
    _show(answers, inputs.terminal())
    notes = inputs.terminal(stderr=True)
    for notice in answers.notices:
        notes.print(f"Note: {inputs.printable(notice)}")


def _show(answers: Answers, console: Console) -> None:
    sure = [answer for answer in answers if answer.confidence >= answers.threshold]
    for number, answer in enumerate(sure, 1):
        _show_answer(answer, console, f"{number}. ")
    if not sure:
        console.print(_nothing(answers), style="bold")
    unsure = [answer for answer in answers.answers[len(sure) :] if answer.confidence >= LEAST]
    if unsure and not sure:
        console.print(f"Best guess, below the threshold of {_percent(answers.threshold)}:", style="dim")
        _show_answer(unsure[0], console, "   ", "dim")
    elif unsure:
        console.print(f"Less likely, below the threshold of {_percent(answers.threshold)}:", style="dim")
        for answer in unsure:
            inputs.indented(console, f"{_short(answer.text)} ({_percent(answer.confidence)}), {_place(answer)}", "dim")
    if not answers.paragraphs:
        return
    documents = inputs.counted(answers.documents, "document")
    read = f"{inputs.counted(answers.paragraphs, 'passage')} of {documents} read by {answers.reader}"
    console.print(inputs.printable(read), style="dim", soft_wrap=True)


def _nothing(answers: Answers) -> str:
    if not answers.paragraphs:
        return "There is nothing to read."
    return "The report does not say." if answers.documents == 1 else "The documents do not say."


def _show_answer(answer: Answer, console: Console, begin: str, style: str = "") -> None:
    """The answer, where it stands, and its sentence."""
    head = Text(inputs.printable(_short(answer.text)), style=style or "bold")
    head.append(f" ({_percent(answer.confidence)})", style=style or "not bold")
    inputs.indented(console, head, first=begin)
    inputs.indented(console, inputs.printable(_place(answer)), style)
    inputs.indented(console, inputs.printable(inputs.origin(answer.metadata, answer.title)), "dim")
    if answer.context:
        said = [f"{_label(flag)} ({_short(cue.words)})" for flag, cue in answer.context.items()]
        inputs.indented(console, inputs.printable(f"context: {', '.join(said)}"), style or "yellow")
    inputs.indented(console, _sentence(answer, console.color_system is not None), style)
    if answer.places:
        shown = [
            f"{_place(place)} ({', '.join((_percent(place.confidence), *map(_label, place.context)))})"
            for place in answer.places[:PLACES]
        ]
        more = f"; and {len(answer.places) - PLACES:,} more" if len(answer.places) > PLACES else ""
        inputs.indented(console, inputs.printable(f"also {'; '.join(shown)}{more}"), "dim")


def _label(flag: str) -> str:
    return LABELS.get(flag, flag)


def _percent(share: float) -> str:
    """`92 %`; only what is certain is 100 %, and only what cannot be is 0 %."""
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def _place(found: Answer | Place) -> str:
    return f"{found.document} {inputs.range_of(found.span)} {' | '.join(found.headings)}".rstrip()


def _short(text: str) -> str:
    """A text on one line, cut if it is very long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[:LONGEST]} ..."


def _sentence(answer: Answer, in_colour: bool) -> Text:
    """The sentence, or what of it is near, with the answer in colour or brackets."""
    begin = max(answer.sentence.begin, answer.span.begin - ASIDE)
    end = min(answer.sentence.end, answer.span.end + ASIDE)
    before, words, after = (
        inputs.printable(_flat(answer[span]))
        for span in (Span(begin, answer.span.begin), answer.span, Span(answer.span.end, end))
    )
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
    text = Text("... " if begin > answer.sentence.begin else "").append(before)
    text.append(words if in_colour else f"[{words}]", style="bold yellow")
    return text.append(after + (" ..." if end < answer.sentence.end else ""))


def _flat(text: str) -> str:
    """A text with its line breaks as blanks."""
    return BLANKS.sub(" ", text)
