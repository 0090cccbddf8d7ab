"""`capr samples`: write the sample notes and articles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from capr import samples
from capr.documents import CaprError


def command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write to; capr creates it.")] = Path(
        "samples"
    ),
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Also write the questions and their answers.")
    ] = None,
) -> None:
    """Write the sample notes and articles into a folder.

    All texts were written for capr; their patients do not exist.

    Example: capr samples demo && capr read demo/notes
    """
    for part, pattern in (("notes", "*.txt"), ("notes", "metadata.csv"), ("articles", "*.md")):
        for path in sorted((samples.folder() / part).glob(pattern)):
            _copy(path, folder / part / path.name)
    notes = len(list((samples.folder() / "notes").glob("*.txt")))
    articles = len(list((samples.folder() / "articles").glob("*.md")))
    print(f"Wrote {notes} notes and {articles} articles to {folder}/")
    if questions is not None:
        _copy(samples.folder() / "questions.jsonl", questions)
        print(f"Wrote {len(samples.questions())} questions to {questions}")


def _copy(source: Path, target: Path) -> None:
    """Copy a file; raise CaprError if the target exists with other contents."""
    if target.exists() and (target.is_dir() or target.read_bytes() != source.read_bytes()):
        raise CaprError(f"{target} exists already and is not the sample. Fix: name another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
