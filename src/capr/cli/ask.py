"""`capr ask`: find the exact words that answer a question, or report that there are none."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from capr.annotate import Vocabulary
from capr.cli import inputs
from capr.cli.results import place, show
from capr.documents import CaprError, Span
from capr.documents.files import missing_path
from capr.index.engines import checked_location, is_library
from capr.runtime.generative import GenerativeReader
from capr.runtime.reader import AnswerReader
from capr.search import Answer, Answers, Library, Place, ask
from capr.search.asking import PASSAGES, AskOptions, clean_question
from capr.search.models import answer_reader

BLANKS = re.compile(r"\s+")
SPEED = 15_000  # bytes per second on two cores
MARGIN = 250  # characters of the sentence to show before and after the answer
MAX_LENGTH = 300  # characters of an answer to show
MAX_PLACES = 5  # other places to show
MIN_CONFIDENCE = 0.1  # of answers below the threshold; less confident answers are almost never right
NONE_PASSES = "No document matches the filters, so there was nothing to read."
LABELS = {"family": "family history"}  # the labels of contexts that differ from their names


def command(
    source: Annotated[str, typer.Argument(metavar="LIBRARY|FILE", help="A library, a file, a folder, or -.")],
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="In plain words.")],
    document: Annotated[str | None, typer.Option("--document", metavar="ID", help="Read only this document.")] = None,
    patient: Annotated[str, typer.Option("--patient", metavar="P", help="Short for --filter patient=P.")] = "",
    filter: inputs.Filter = None,
    k: Annotated[int, typer.Option("-k", help="Maximum number of answers.")] = 3,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Minimum confidence of an answer, 0 to 1.")
    ] = None,
    passages: Annotated[
        int, typer.Option("--passages", help="Maximum number of passages to read without --document.")
    ] = PASSAGES,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="FOLDER", help="The reader. Default: the built-in reader.")
    ] = None,
    generative: Annotated[
        str,
        typer.Option(
            "--generative",
            metavar="URL",
            help="Also let a language model read the best passages. This SENDS text to the server at URL.",
        ),
    ] = "",
    generative_model: Annotated[
        str, typer.Option("--generative-model", metavar="NAME", help="The name of the language model at that server.")
    ] = "",
    encoder: inputs.Encoder = None,
    ranker: inputs.Ranker = None,
    vocabulary: inputs.VocabularyTables = None,
    format: inputs.Format = None,
    column: inputs.Column = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with answers.")] = False,
) -> None:
    """Find the exact words that answer a question in a report, a patient's notes, or a whole library.

    Each answer has its position, its confidence and its context, such as negated, historical or family. If no answer
    reaches the threshold, it says that there is none. The reader reads a file or a --document whole; in a library it
    reads the best passages of a search.

    Example: capr ask library "What dose of vancomycin was she discharged on?" --patient p03
    """
    checked_location(source)  # reports the address of an unknown engine
    text = clean_question(" ".join(question))
    options = AskOptions(k, threshold, passages)
    conditions = [*(filter or ()), *([f"patient={patient}"] if patient else ())]
    model = _model(reader, generative, generative_model, threshold)
    tables = Vocabulary.load(*vocabulary or ())
    if is_library(source):
        with Library(source, encoder=encoder, ranker=ranker, vocabulary=tables) as opened:
            answers = opened.ask(text, document, filters=conditions, reader=model, **asdict(options))
            unfiltered = not conditions or answers.passages or _pass_filters(opened, conditions, document)
        show(answers, as_json, partial(_show, nothing="" if unfiltered else NONE_PASSES))
        if not unfiltered:
            raise typer.Exit(1)
        return
    if conditions and source != "-" and not Path(source).exists():
        raise missing_path(source)
    if conditions:
        fix = "put it into one (capr index), or name a document with --document"
        raise CaprError(f"{source} is not a library, and only a library can be filtered. Fix: {fix}.")
    documents = inputs.Documents([source], format, column, False, False, SPEED)
    answers = ask(
        documents.documents(),
        text,
        document=document,
        k=options.k,
        reader=model,
        threshold=threshold,
        vocabulary=tables,
    )
    if documents.reading.documents:
        show(answers, as_json, _show)
    documents.finish()
    if not documents.reading.documents:
        raise CaprError(f"there is no document in {source}. Fix: name a file or folder that has one.")


def _model(folder: str | None, url: str, name: str, threshold: float | None) -> AnswerReader:
    """Return the reader of answers; with a URL, a generative reader that falls back to it."""
    if bool(url) != bool(name):
        missing, present = ("--generative", "--generative-model") if name else ("--generative-model", "--generative")
        raise CaprError(f"{present} needs {missing}. Fix: give both, or neither.")
    reader = answer_reader(folder)
    return GenerativeReader(reader, url, name, threshold=threshold) if url else reader


def _pass_filters(library: Library, conditions: list[str], document: str | None) -> bool:
    """Return whether the document, or any, matches the filters."""
    ids = library.index.ids(library.resources.filters(conditions))
    return document in ids if document is not None else bool(ids)


def _show(answers: Answers, console: Console, nothing: str = "") -> None:
    """Print the answers; `nothing` says why there was nothing to read."""
    confident = [answer for answer in answers if answer.confidence >= answers.threshold]
    for number, answer in enumerate(confident, 1):
        _show_answer(answer, console, f"{number}. ")
    if not confident:
        console.print(nothing or _no_answer(answers), style="bold")
    less_confident = [answer for answer in answers.answers[len(confident) :] if answer.confidence >= MIN_CONFIDENCE]
    if less_confident and not confident:
        console.print(f"Best guess, below the threshold of {_percent(answers.threshold)}:", style="dim")
        _show_answer(less_confident[0], console, "   ", "dim")
    elif less_confident:
        console.print(f"Less likely, below the threshold of {_percent(answers.threshold)}:", style="dim")
        for answer in less_confident:
            inputs.print_indented(
                console, f"{_truncated(answer.text)} ({_percent(answer.confidence)}), {_place(answer)}", "dim"
            )
    if not answers.passages:
        return
    documents = inputs.quantity(answers.documents, "document")
    summary = f"{answers.reader} read {inputs.quantity(answers.passages, 'passage')} from {documents}"
    console.print(inputs.printable(summary), style="dim", soft_wrap=True)


def _no_answer(answers: Answers) -> str:
    if not answers.passages:
        return "There is nothing to read."
    return "The report does not say." if answers.documents == 1 else "The documents do not say."


def _show_answer(answer: Answer, console: Console, label: str, style: str = "") -> None:
    """Print an answer with its position, its context and its sentence."""
    head = Text(inputs.printable(_truncated(answer.text)), style=style or "bold")
    head.append(f" ({_percent(answer.confidence)})", style=style or "not bold")
    inputs.print_indented(console, head, label=label)
    inputs.print_indented(console, inputs.printable(_place(answer)), style)
    inputs.print_indented(console, inputs.printable(inputs.origin(answer.metadata, answer.title)), "dim")
    if answer.context:
        contexts = [f"{_label(flag)} ({_truncated(cue.words)})" for flag, cue in answer.context.items()]
        inputs.print_indented(console, inputs.printable(f"context: {', '.join(contexts)}"), style or "yellow")
    inputs.print_indented(console, _sentence(answer, console.color_system is not None), style)
    if answer.places:
        places = [
            f"{_place(other)} ({', '.join((_percent(other.confidence), *map(_label, other.context)))})"
            for other in answer.places[:MAX_PLACES]
        ]
        more = f"; and {len(answer.places) - MAX_PLACES:,} more" if len(answer.places) > MAX_PLACES else ""
        inputs.print_indented(console, inputs.printable(f"also {'; '.join(places)}{more}"), "dim")


def _label(flag: str) -> str:
    return LABELS.get(flag, flag)


def _percent(share: float) -> str:
    """Format a share: `92%`. Only 1 becomes 100%, and only 0 becomes 0%."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def _place(item: Answer | Place) -> str:
    return place(item.document, item.span, item.headings)


def _truncated(text: str) -> str:
    """Return a text on one line, truncated to `MAX_LENGTH` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LENGTH else f"{line[:MAX_LENGTH]} ..."


def _sentence(answer: Answer, in_colour: bool) -> Text:
    """Return the part of the sentence near the answer, with the answer in colour or brackets."""
    begin = max(answer.sentence.begin, answer.span.begin - MARGIN)
    end = min(answer.sentence.end, answer.span.end + MARGIN)
    before, answer_text, after = (
        inputs.printable(_on_one_line(answer[span]))
        for span in (Span(begin, answer.span.begin), answer.span, Span(answer.span.end, end))
    )
    answer_text = answer_text if len(answer_text) <= MAX_LENGTH else f"{answer_text[:MAX_LENGTH]} ..."
    text = Text("... " if begin > answer.sentence.begin else "").append(before)
    text.append(answer_text if in_colour else f"[{answer_text}]", style="bold yellow")
    return text.append(after + (" ..." if end < answer.sentence.end else ""))


def _on_one_line(text: str) -> str:
    """Replace each run of blanks and line breaks by one blank."""
    return BLANKS.sub(" ", text)
