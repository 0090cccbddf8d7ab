"""`capr evaluate entities`: measure how well a tagger finds entities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.documents import CaprError


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="CoNLL files with gold entities, such as test.tsv.")
    ],
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FOLDER", help="The tagger to measure. Default: the built-in tagger."),
    ] = None,
    fp32: Annotated[bool, typer.Option("--fp32", help="Use the weights in full precision, to compare.")] = False,
    as_json: inputs.Json = False,
) -> None:
    """Measure precision, recall and F1 of whole entities, in per cent.

    If the folder of a file is one of the tagger's corpora, the tagger follows the guideline of that corpus.

    Example: capr evaluate entities NCBI-disease-IOB/test.tsv --model tagger
    """
    from capr.evaluate.entities import evaluate
    from capr.runtime.tagger import SHIPPED, Tagger  # a slow import

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("corpus", "type", "precision", "recall", "F1"):
        table.add_column(column, justify="left" if column in ("corpus", "type") else "right")
    for path in files:
        if not path.is_file():
            fix = "name a CoNLL file, with a word and its BIO label on each line"
            raise CaprError(f"{path} is not a file. Fix: {fix}.")
        guidelines = Tagger.read_manifest(model or SHIPPED).guidelines
        corpus = path.resolve().parent.name
        tagger = Tagger(model, corpus if corpus in guidelines else None, "model.fp32.onnx" if fp32 else "model.onnx")
        scores = evaluate(tagger, path)
        if not scores:
            raise CaprError(f"{path} has no entity. Fix: give it BIO labels such as B-Disease.")
        for kind, score in scores.items():
            if as_json:
                measures = {"P": score.precision, "R": score.recall, "F1": score.f1}
                print(json.dumps({"corpus": corpus, "type": kind, "measures": measures}))
            else:
                table.add_row(corpus, kind, *(f"{100 * value:.2f}" for value in score))
    if not as_json:
        inputs.terminal().print(table)
