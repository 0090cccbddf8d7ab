"""`capr samples`: notes and articles to try things on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from capr import samples


def command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to; made if it is not there.")] = Path(
        "samples"
    ),
) -> None:
    """Write the sample notes, articles and questions into a folder.

    All of them were written for capr; no patient in them exists.

    Example: capr samples demo && capr read demo/notes
    """
    for part in ("notes", "articles"):
        shutil.copytree(samples.folder() / part, folder / part, dirs_exist_ok=True)
    shutil.copy(samples.folder() / "questions.jsonl", folder)
    notes = len(list((folder / "notes").glob("*.txt")))
    articles = len(list((folder / "articles").glob("*.md")))
    print(f"{notes} notes, {articles} articles and {len(samples.questions())} questions are in {folder}/")
