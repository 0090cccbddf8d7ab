"""`capr questions`: make questions and answers from notes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from capr.annotate.mentions import annotator
from capr.annotate.vocabulary import Vocabulary
from capr.cli import inputs
from capr.cli.options import expand_options
from capr.documents import CaprError
from capr.supervise.questions import CLAUSES, PER_NOTE, UNANSWERABLE, questions
from capr.supervise.reports import count, write_squad

SPEED = 200_000  # bytes per second on two cores


@expand_options
def command(
    sources: inputs.DocumentOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="JSON", help="The SQuAD v2 JSON to write.")],
    seed: Annotated[int, typer.Option("--seed", help="The seed of the random choice of questions.")] = 0,
    per_note: Annotated[
        int, typer.Option("--per-note", min=0, help="Maximum number of questions about one note; 0 for all.")
    ] = PER_NOTE,
    unanswerable: Annotated[
        float, typer.Option("--unanswerable", min=0, max=0.9, help="The share of unanswerable questions.")
    ] = UNANSWERABLE,
    clauses: Annotated[
        float,
        typer.Option("--clauses", min=0, max=1, help="Maximum share of answerable questions from plain clauses."),
    ] = CLAUSES,
    vocabulary: inputs.VocabularyTables = None,
) -> None:
    """Generate questions from notes, each with the exact words that answer it.

    The questions ask for doses, reasons, results, dates, allergies, relatives and more, where the note states the
    answer, and for facts that the note does not have. Use the file to train and measure readers.

    Example: capr questions notes/ -o questions.json
    """
    _check_output(output)
    source = sources.read(SPEED)
    finder = annotator(False, Vocabulary.load(*vocabulary or ()))
    with inputs.progress("notes") as progress:
        reports = list(questions(source.documents(), seed, per_note, unanswerable, finder, progress, clauses))
    if not reports:
        fix = "name clinical notes, or name the column of the text with --column"
        raise CaprError(
            f"capr found no question in {inputs.quantity(source.reading.documents, 'document')}. Fix: {fix}."
        )
    write_squad(reports, output)
    question_count, unanswerable_count = count(reports)
    console = inputs.terminal()
    answer_counts = Counter(len(question.answers) for report in reports for question in report.questions)
    several = sum(number for answers, number in answer_counts.items() if answers > 1)
    console.print(
        f"{inputs.quantity(question_count, 'question')} about {inputs.quantity(len(reports), 'note')}, "
        f"{unanswerable_count:,} without an answer, {several:,} with several: {output}",
        soft_wrap=True,
    )
    source.finish()


def _check_output(output: Path) -> None:
    """Raise CaprError unless the output is new, so that no file is overwritten."""
    if not output.parent.is_dir():
        raise CaprError(f"there is no folder {output.parent}. Fix: create it, or name another file with --output.")
    if output.is_dir():
        raise CaprError(f"{output} is a folder. Fix: name a file with --output.")
    if output.exists():
        raise CaprError(f"{output} exists already. Fix: name another file, or remove it first.")
