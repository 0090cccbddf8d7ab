"""`capr questions`: what can be asked about these notes, and where are the answers?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from capr.annotate.mentions import annotator
from capr.annotate.vocabulary import Vocabulary
from capr.cli import inputs
from capr.documents import CaprError
from capr.supervise.questions import CLAUSES, PER_NOTE, UNANSWERABLE, questions
from capr.supervise.reports import count, write_squad

SPEED = 200_000  # bytes a second on two cores


def command(
    files: inputs.Files,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="JSON", help="The SQuAD v2 JSON to write.")],
    seed: Annotated[int, typer.Option("--seed", help="The same seed asks the same questions.")] = 0,
    per_note: Annotated[
        int, typer.Option("--per-note", min=0, help="Questions about one note, at most; 0 for all.")
    ] = PER_NOTE,
    unanswerable: Annotated[
        float, typer.Option("--unanswerable", min=0, max=0.9, help="The share that the note does not answer.")
    ] = UNANSWERABLE,
    clauses: Annotated[
        float, typer.Option("--clauses", min=0, max=1, help="The share of the others that plain clauses give.")
    ] = CLAUSES,
    vocabulary: inputs.VocabularyTables = None,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: inputs.Replace = False,
) -> None:
    """Make questions about notes from the notes themselves, with the exact words that answer them.

    They ask for doses, reasons, results, dates, allergies, relatives and more, wherever the note surely says it, and
    for things that it does not say. The file trains and measures readers of answers.

    Example: capr questions notes/ -o questions.json
    """
    _may_write(output)
    source = inputs.Documents(files, format, column, strict, replace, speed=SPEED)
    finder = annotator(False, Vocabulary.load(*vocabulary or ()))
    with inputs.progress("notes") as progress:
        found = list(questions(source.documents(), seed, per_note, unanswerable, finder, progress, clauses))
    if not found:
        fix = "name clinical notes, or say with --column what holds their text"
        raise CaprError(f"nothing can be asked of {inputs.counted(source.reading.documents, 'document')}. Fix: {fix}.")
    write_squad(found, output)
    asked, without = count(found)
    console = inputs.terminal()
    lengths = Counter(len(question.answers) for report in found for question in report.questions)
    several = sum(number for answers, number in lengths.items() if answers > 1)
    console.print(
        f"{inputs.counted(asked, 'question')} about {inputs.counted(len(found), 'note')}, "
        f"{without:,} without an answer, {several:,} with several: {output}",
        soft_wrap=True,
    )
    source.finish()


def _may_write(output: Path) -> None:
    """Only questions are overwritten: the output may be a document that somebody named by mistake."""
    if not output.parent.is_dir():
        raise CaprError(f"there is no folder {output.parent}. Fix: make it, or name another file with --output.")
    if output.is_dir():
        raise CaprError(f"{output} is a folder. Fix: name a file with --output.")
    if output.exists():
        with output.open(encoding="utf-8", errors="replace") as file:
            if not file.read(40).startswith('{"version": "v2.0"'):
                raise CaprError(f"{output} is there already and holds no questions. Fix: name another file.")
