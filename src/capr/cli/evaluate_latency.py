"""`capr evaluate latency`: measure how long one query takes."""

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
    model: Annotated[list[Path], typer.Option("--model", metavar="FOLDER", help="A model. Repeat to compare.")],
    sizes: Annotated[str, typer.Option("--sizes", help="Numbers of passages, separated by commas.")] = (
        "64,128,256,512,1024,2048"
    ),
    device: Annotated[str, typer.Option("--device", help="cpu, or cuda for the torch weights of capr train.")] = "cpu",
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Number of queries; the result is their median.")
    ] = 5,
    as_json: inputs.Json = False,
) -> None:
    """Time one query against passages of 512 word pieces, as in figure 3 of the CAPR paper.

    Bi- and poly-encoders use encoded passages; a cross-encoder reads each passage with the query.

    Example: capr evaluate latency --model bi --model cross --sizes 64,128
    """
    from capr.evaluate.latency import timings

    parts = [size.strip() for size in sizes.split(",")]
    if not all(size.isdecimal() and int(size) > 0 for size in parts):
        raise CaprError(f"--sizes {sizes!r} is not a list of numbers. Fix: write --sizes 64,128.")
    counts = [int(size) for size in parts]
    if device not in ("cpu", "cuda"):
        raise CaprError(f"--device does not accept {device!r}. Fix: use cpu or cuda.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("model", "kind", "device", "passages", "ms"):
        table.add_column(column, justify="right" if column in ("passages", "ms") else "left")
    for timing in timings(model, device, counts, repeats):
        if as_json:
            print(json.dumps(timing._asdict()))
        table.add_row(timing.model, timing.kind, device, f"{timing.passages:,}", f"{1000 * timing.seconds:,.1f}")
    if not as_json:
        inputs.terminal().print(table)
