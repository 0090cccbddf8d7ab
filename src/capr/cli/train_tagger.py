"""`capr train tagger`: teach a network to find entities."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import capr
from capr.cli import inputs
from capr.documents import CaprError


class Architecture(StrEnum):
    """The networks."""

    transformer = "transformer"
    tasty = "tasty"


def command(
    corpora: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS...", help="Folders with train.tsv and devel.tsv: a word and its BIO label a line."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The tagger.")],
    architecture: Annotated[
        Architecture, typer.Option("--architecture", help="A transformer, or letter trigrams and a BLSTM (TASTY).")
    ] = Architecture.transformer,
    base: Annotated[
        Path | None, typer.Option("--base", metavar="MODEL", help="The folder of a Hugging Face encoder to start from.")
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--texts", metavar="FILE", help="Documents of the domain to adapt the encoder to."),
    ] = None,
    adapt_steps: Annotated[int, typer.Option("--adapt-steps", min=0, help="Steps of that.")] = 3000,
    layers: Annotated[int, typer.Option("--layers", min=0, help="Layers of the encoder to keep; 0 for all.")] = 6,
    distil: Annotated[
        bool, typer.Option("--distil/--no-distil", help="Let the whole encoder teach the one with fewer layers.")
    ] = True,
    epochs: Annotated[int, typer.Option("--epochs", min=1)] = 20,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Windows in a step.")] = 32,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="2e-4 for a transformer, 1e-3 for TASTY if not given.")
    ] = None,
    devel: Annotated[bool, typer.Option("--devel/--no-devel", help="Train on devel.tsv as well.")] = True,
    seed: Annotated[int, typer.Option("--seed")] = 1,
) -> None:
    """Train a tagger from annotated corpora and export it to ONNX, its weights in 8 bits.

    The first corpus's guideline is the tagger's own. Interrupted, the same command goes on after the last stage that
    was finished. Needs the extra `train`.

    Example: capr train tagger BC5CDR NCBI-disease --base bge-small --texts articles/ -o tagger
    """
    try:
        from capr.train import tagger
        from capr.train.corpus import Corpus
    except ImportError as error:
        fix = "pip install 'capr[train]'"
        raise CaprError(f"training needs {error.name}, which is not installed. Fix: {fix}.") from error
    tasty = architecture is Architecture.tasty
    settings = tagger.Settings(
        layers=layers or None, distil=distil, adapt_steps=adapt_steps, epochs=epochs, batch=batch,
        learning_rate=learning_rate or (1e-3 if tasty else 2e-4), with_devel=devel, seed=seed,
    )  # fmt: skip
    loaded = [Corpus.load(folder) for folder in corpora]
    with inputs.steps() as progress:
        if tasty:
            if base or texts:
                raise CaprError("TASTY starts from nothing. Fix: leave out --base and --texts.")
            tagger.train_tasty(loaded, output, settings, progress)
        else:
            if base is None:
                fix = "name the folder of an encoder with --base, or use --architecture tasty"
                raise CaprError(f"a transformer starts from an encoder that was trained before. Fix: {fix}.")
            plain = [document.text for document in capr.read(texts)] if texts else []
            tagger.train_transformer(loaded, base, plain, output, settings, progress)
    print(f"{output} is a tagger; `capr evaluate entities` measures it.")
