"""The common part of sources that make training data from documents."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from capr.cli import inputs
from capr.cli.options import check_choice
from capr.documents import CaprError, Document, Problem
from capr.documents.files import Sidecars, files

if TYPE_CHECKING:
    from capr.annotate.vocabulary import Vocabulary
    from capr.supervise.labels import Labeller

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The model.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")]
READING = {  # the options that change how documents are read, by the name of the field
    "part": "--part",
    "aspects_from_text": "--no-aspects-from-text",
    "without": "--without",
    "without_passages": "--without-passages",
    "aliases": "--aliases",
    "vocabulary": "--vocabulary",
    "format": "--format",
    "column": "--column",
}
ORIGIN = "training.documents.json"  # the names and the digest of the documents that the training data are from
SPEED = 500_000  # bytes per second that are read and labelled


@dataclass(frozen=True, kw_only=True)
class FromDocuments:
    """The options of a source that makes training data from documents: which documents to read, and which to leave out.

    The output folder keeps the training data in a file that can replace the documents in a later run. `file_name` is
    the name of this file, and `suffix` ends the names of all such files.
    """

    file_name: ClassVar[str]
    suffix: ClassVar[str]
    parallel: ClassVar[bool] = False  # whether several processes may train together

    files: inputs.Files
    output: Output
    resume: Resume = False
    part: Annotated[
        str, typer.Option("--part", help="all, or train: without the fifth that capr evaluate tests on.")
    ] = "all"
    aspects_from_text: inputs.AspectsFromText = True
    without: inputs.Without = None
    without_passages: inputs.WithoutPassages = None
    aliases: inputs.Aliases = None
    vocabulary: inputs.VocabularyTables = None
    format: inputs.Format = None
    column: inputs.Column = None

    def prepared_file(self, first: bool) -> Path | None:
        """Return a file with training data: the input, or the file of an interrupted run or of the first process.

        Raises:
            CaprError: the input is such a file, but there are options for reading documents; or the file of an
                interrupted run was made from other documents.
        """
        check_choice("--part", self.part, ("all", "train"))
        if len(self.files) == 1 and self.files[0].endswith(self.suffix):
            self._check_reading_options(self.files[0])
            return Path(self.files[0])
        saved = self.output / self.file_name
        if not saved.is_file() or not (self.resume or not first):
            return None
        if first:
            self._check_same_documents(saved)
        return saved

    def labeller(self, vocabulary: Vocabulary | None = None) -> Labeller:
        """Return the labeller, which leaves out the entities and passages of a test."""
        from capr.annotate.mentions import annotator
        from capr.annotate.vocabulary import Vocabulary
        from capr.supervise.labels import Labeller

        return Labeller(
            annotator(False, vocabulary or Vocabulary.load(*self.vocabulary or ())),
            aspects_from_text=self.aspects_from_text,
            aliases=inputs.read_aliases(self.aliases),
            held_out=inputs.read_names(self.without),
            held_out_texts=inputs.read_texts(self.without_passages),
        )

    def documents(self) -> Iterator[Document]:
        """Yield the documents to learn from."""
        from capr.supervise.split import is_test

        source = inputs.Documents(self.files, self.format, self.column, False, False, speed=SPEED)
        for document in source.documents():
            if self.part == "all" or not is_test(document.id):
                yield document

    def save(self, data: Any, size: str, labeller: Labeller) -> None:
        """Save the training data in the output folder, and print their size."""
        self.output.mkdir(parents=True, exist_ok=True)
        data.save(self.output / self.file_name)
        path = self.output / ORIGIN
        path.unlink(missing_ok=True)
        if "-" not in self.files:  # standard input cannot be read again
            path.write_text(json.dumps({"files": self.files, "digest": self._origin_digest()}) + "\n", "utf-8")
        held_out = labeller.skipped.get("held out", 0)
        left_out = f", {held_out:,} documents and passages left out" if self.without else ""
        print(f"{size}{left_out}: {self.output / self.file_name}", file=sys.stderr)

    def _check_same_documents(self, saved: Path) -> None:
        """Raise CaprError if the training data of an interrupted run are from other documents than those named now.

        The same names need no files any more.
        """
        try:
            origin = json.loads((self.output / ORIGIN).read_bytes())
            names, digest = origin["files"], origin["digest"]
        except (OSError, ValueError, LookupError, TypeError):
            return  # an older version of capr wrote none
        if self.files == names and not all(Path(name).exists() for name in names):
            return
        if self._origin_digest() != digest:
            fact = f"{saved} was made from other documents, or with other options for reading them"
            fix = f"name the same documents ({' '.join(names)}) and options, or train in another folder (-o)"
            raise CaprError(f"{fact}. Fix: {fix}.")

    def _origin_digest(self) -> str:
        """Return the digest of the files and of the options for reading them."""
        total = hashlib.sha256(repr([getattr(self, name) or None for name in READING]).encode())
        for name in self.files:
            for file in files(name, Sidecars()):
                if isinstance(file, Problem) or file.path is None:
                    continue
                with file.path.open("rb") as content:
                    sha = hashlib.file_digest(content, "sha256").hexdigest()
                total.update(repr((file.name, sorted(file.metadata.items()), sha)).encode())
        return total.hexdigest()

    def _check_reading_options(self, path: str) -> None:
        """Raise CaprError for options that change how documents are read, because the input is training data."""
        defaults = {field.name: field.default for field in fields(self)}
        # The default of a list may be empty or None.
        changed = [
            option for name, option in READING.items() if (getattr(self, name) or None) != (defaults[name] or None)
        ]
        if changed:
            fact = f"{path} holds training data already, and {' and '.join(changed)} would have no effect"
            raise CaprError(f"{fact}. Fix: make it again from the documents with these options, or leave them out.")


def format_scores(scores: dict[str, float]) -> str:
    """Format scores: `R@1 43.1%, R@5 80.0%`."""
    from capr.train.card import label

    return ", ".join(f"{label(name)} {100 * value:.1f}%" for name, value in scores.items())
