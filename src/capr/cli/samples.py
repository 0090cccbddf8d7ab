"""`capr samples`: notes and articles to try things on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from capr import samples
from capr.documents import CaprError


def command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to; made if it is not there.")] = Path(
        "samples"
    ),
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Write the questions and their answers, too.")
    ] = None,
) -> None:
    """Write the sample notes and articles into a folder.

    All of them were written for capr; no patient in them exists.

    Example: capr samples demo && capr read demo/notes
    """
    for part, pattern in (("notes", "*.txt"), ("notes", "metadata.csv"), ("articles", "*.md")):
        for path in sorted((samples.folder() / part).glob(pattern)):
            _copy(path, folder / part / path.name)
    notes = len(list((samples.folder() / "notes").glob("*.txt")))
    articles = len(list((samples.folder() / "articles").glob("*.md")))
    print(f"{notes} notes and {articles} articles are in {folder}/")
    if questions is not None:
        _copy(samples.folder() / "questions.jsonl", questions)
        print(f"{len(samples.questions())} questions are in {questions}")


def _copy(source: Path, target: Path) -> None:
    """Writes a file, but never over one that says something else."""
    if target.exists() and (target.is_dir() or target.read_bytes() != source.read_bytes()):
        raise CaprError(f"{target} is there already and is not the sample. Fix: name another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
