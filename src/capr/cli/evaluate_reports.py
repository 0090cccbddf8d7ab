"""`capr evaluate reports`: does a reader find the answer in a long report, and know when there is none?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.documents import CaprError

if TYPE_CHECKING:
    from capr.evaluate.reports import Measured, Spread
    from capr.search.reader import AnswerReader
    from capr.segment import Paragraphs
    from capr.supervise.reports import Report

SAMPLES = "samples"
SHIPPED = "reader"
COLUMNS = {
    "P@1": "P@1", "P@2": "P@2", "P@3": "P@3", "Oracle-QA EM": "orac.\nEM", "Oracle-QA F1": "orac.\nF1",
    "PR-QA EM": "PR\nEM", "PR-QA F1": "PR\nF1", "answered": "answ.", "refused": "refu.", "ECE": "ECE",
}  # fmt: skip


def command(
    data: Annotated[
        list[str],
        typer.Option("--data", metavar="FILE", help="SQuAD JSON, emrQA's data.json, or samples; may be repeated."),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="FOLDER", help="A reader; may be repeated, to compare. reader if not given."),
    ] = None,
    cut: Annotated[str | None, typer.Option("--cut", help="passage (if not given), heading, uniform or whole.")] = None,
    length: Annotated[
        int, typer.Option("--length", min=0, help="Characters in a paragraph; 1000 of passages or if uniform.")
    ] = 0,
    lengths: Annotated[
        str | None, typer.Option("--lengths", help="Several, with commas between: by heading and uniformly.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw measures over lengths, or the reliability: .png or .svg."),
    ] = None,
    per_question: Annotated[
        Path | None, typer.Option("--per-question", metavar="FILE", help="Write what came of each as JSON Lines.")
    ] = None,
    part: Annotated[str, typer.Option("--part", help="all, or test: a fifth of the reports, by their ids.")] = "all",
    limit: Annotated[int, typer.Option("--limit", min=0, help="Ask only so many questions; 0 for all.")] = 0,
    as_json: inputs.Json = False,
) -> None:
    """Read answers out of whole reports: paragraph retrieval, Oracle-QA and PR-QA of the paragraph-QA paper.

    Passages with their neighbours are what capr ask reads. By heading, those that are commonly known open paragraphs;
    with --length, those that are frequent enough in the data, so that paragraphs come to that length.

    Example: capr evaluate reports --data samples
    """
    wanted = _lengths(lengths)
    _check(cut, length, wanted, part, plot)
    counted, reports = _reports(data, part, limit)
    readers = [_reader(name) for name in model or [SHIPPED]]
    from capr.evaluate.reports import over_lengths, spreads

    if wanted:
        with inputs.progress("questions") as progress:
            cuts = (cut,) if cut else ("heading", "uniform")
            measured = over_lengths(readers, reports, wanted, cuts, counted, progress)
    else:
        measured = _measured(readers, reports, _paragraphs(cut or "passage", length, counted))
    seeds = spreads(measured) if wanted and len(readers) > 1 else []
    if per_question:
        _write(per_question, measured)
    if plot:
        from capr.evaluate.report_plots import plot_lengths, plot_reliability

        (plot_lengths if wanted else plot_reliability)(plot, measured)
    if as_json:
        for found in [one.as_json() for one in measured] + [group.as_json() for group in seeds]:
            print(json.dumps(found))
    else:
        _show(measured, seeds, reports)


def _check(cut: str | None, length: int, wanted: list[int], part: str, plot: Path | None) -> None:
    from capr.segment.paragraphs import CUTS

    if cut is not None and cut not in CUTS:
        raise CaprError(f"--cut knows no {cut!r}. Fix: use {', '.join(CUTS)}.")
    if part not in ("all", "test"):
        raise CaprError(f"--part knows no {part!r}. Fix: use all or test.")
    if cut == "whole" and (length or wanted):
        raise CaprError("--cut whole has no length. Fix: leave out --length and --lengths.")
    if length and wanted:
        raise CaprError("--length and --lengths exclude each other. Fix: leave out one of them.")
    if plot:
        from capr.evaluate.plots import suits

        suits(plot)


def _lengths(given: str | None) -> list[int]:
    parts = [part.strip() for part in given.split(",")] if given else []
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise CaprError(f"--lengths {given!r} is no list of numbers. Fix: write --lengths 200,400,800.")
    return [int(part) for part in parts]


def _reports(data: list[str], part: str, limit: int) -> tuple[list[Report], list[Report]]:
    """The reports whose headings are counted, and those that are asked: others, where only a part is tested."""
    from capr.evaluate.reports import limited
    from capr.supervise.reports import of_samples, reports, split

    found = of_samples() if SAMPLES in data else []
    files = [name for name in data if name != SAMPLES]
    if files:
        source = inputs.Documents(files, "squad", None, False, False)
        found += reports(source.documents())
    train, test = split(found)
    asked = limited(test if part == "test" else found, limit)
    if not asked:
        fix = "name SQuAD JSON, emrQA's data.json or samples with --data" + (", or test on all" if found else "")
        raise CaprError(f"the data have no question to ask. Fix: {fix}.")
    return (train or found) if part == "test" else found, asked


def _reader(name: str) -> AnswerReader:
    from capr.search.models import answer_reader

    return answer_reader(None if name == SHIPPED and not Path(name).is_dir() else name)


def _paragraphs(cut: str, length: int, counted: list[Report]) -> Paragraphs:
    from capr.segment.paragraphs import LENGTH, Paragraphs

    if length and cut == "heading":
        return Paragraphs.of_length(cut, length, [report.document for report in counted])
    return Paragraphs(cut, length or LENGTH)


def _measured(readers: list[AnswerReader], reports: list[Report], paragraphs: Paragraphs) -> list[Measured]:
    from capr.evaluate.reports import measure

    found = []
    for reader in readers:
        with inputs.progress("questions") as progress:
            found.append(measure(reader, reports, paragraphs, progress=progress))
    return found


def _write(path: Path, measured: list[Measured]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for one in measured:
            for outcome in one.outcomes:
                line = {"model": one.reader, "cut": one.cut, "length": one.wanted, **outcome.as_json()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _show(measured: list[Measured], seeds: list[Spread], reports: list[Report]) -> None:
    from capr.supervise.reports import count

    asked, without = count(reports)
    console = inputs.terminal()
    console.print(
        f"{inputs.counted(asked, 'question')}, {without:,} without an answer, "
        f"about {inputs.counted(len(reports), 'report')}, in %"
    )
    names = [name for name in COLUMNS if any(name in one.measures for one in measured)]
    readers = dict.fromkeys(one.reader for one in measured)
    for reader in readers:
        if len(readers) > 1:
            console.print(inputs.printable(reader), style="bold")
        table = _table(names)
        for one in measured:
            if one.reader == reader:
                table.add_row(one.cut, f"{one.length:,.0f}", *_cells(one.measures, names))
        console.print(table)
    if seeds:
        console.print(f"mean of {len(readers)} models, lowest and highest", style="bold")
        table = _table(names)
        for group in seeds:
            table.add_row(group.cut, f"{group.length:,.0f}", *_cells(group.mean, names))
            for label, measures in (("lowest", group.lowest), ("highest", group.highest)):
                table.add_row(label, "", *_cells(measures, names), style="dim")
        console.print(table)


def _table(names: list[str]) -> Table:
    """Of 80 columns, if paragraphs have less than 100,000 characters."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("cut", no_wrap=True)
    for label in ("chars", *(COLUMNS[name] for name in names)):
        table.add_column(label, justify="right", no_wrap=True)
    return table


def _cells(measures: Mapping[str, float], names: list[str]) -> list[str]:
    """In per cent."""
    return ["100" if measures[name] == 1 else f"{100 * measures[name]:.1f}" for name in names]
