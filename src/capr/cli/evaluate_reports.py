"""`capr evaluate reports`: measure how a reader answers questions about whole reports."""

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
    from capr.evaluate.reports import ReaderResult, Spread
    from capr.runtime.reader import AnswerReader
    from capr.segment import Paragraphs
    from capr.supervise.reports import Report

SAMPLES = "samples"
SHIPPED = "reader"
COLUMNS = {
    "P@1": "P@1",
    "P@2": "P@2",
    "P@3": "P@3",
    "Oracle-QA EM": "orac.\nEM",
    "Oracle-QA F1": "orac.\nF1",
    "PR-QA EM": "PR\nEM",
    "PR-QA F1": "PR\nF1",
    "answered": "answ.",
    "refused": "refu.",
    "ECE": "ECE",
}


def command(
    data: Annotated[
        list[str],
        typer.Option("--data", metavar="FILE", help="SQuAD JSON, emrQA's data.json, or samples. May be repeated."),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="FOLDER", help="A reader; repeat to compare several. Default: reader."),
    ] = None,
    cut: Annotated[str | None, typer.Option("--cut", help="passage (the default), heading, uniform or whole.")] = None,
    length: Annotated[
        int, typer.Option("--length", min=0, help="Characters in a paragraph. Default for passage and uniform: 1000.")
    ] = 0,
    lengths: Annotated[
        str | None, typer.Option("--lengths", help="Several lengths, separated by commas, by heading and uniform.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw measures over lengths, or the reliability: .png or .svg."),
    ] = None,
    per_question: Annotated[
        Path | None,
        typer.Option("--per-question", metavar="FILE", help="Write the outcome of each question as JSON Lines."),
    ] = None,
    part: Annotated[str, typer.Option("--part", help="all, or test: a fifth of the reports, by their ids.")] = "all",
    limit: Annotated[int, typer.Option("--limit", min=0, help="Maximum number of questions; 0 for all.")] = 0,
    as_json: inputs.Json = False,
) -> None:
    """Measure paragraph retrieval, Oracle-QA and PR-QA of the paragraph-QA paper on whole reports.

    --cut passage makes passages with their neighbours, as capr ask does. --cut heading begins a paragraph at each
    common heading; with --length, at each heading that is frequent enough in the data for that mean length.

    Example: capr evaluate reports --data samples
    """
    target_lengths = _parse_lengths(lengths)
    _check_options(cut, length, target_lengths, part, plot)
    counted_reports, reports = _read_reports(data, part, limit)
    readers = [_load_reader(name) for name in model or [SHIPPED]]
    from capr.evaluate.reports import over_lengths, spreads

    if target_lengths:
        with inputs.progress("questions") as progress:
            cuts = (cut,) if cut else ("heading", "uniform")
            measured = over_lengths(readers, reports, target_lengths, cuts, counted_reports, progress)
    else:
        measured = _measure(readers, reports, _paragraphs(cut or "passage", length, counted_reports))
    seeds = spreads(measured) if target_lengths and len(readers) > 1 else []
    if per_question:
        _write_outcomes(per_question, measured)
    if plot:
        from capr.evaluate.report_plots import plot_lengths, plot_reliability

        (plot_lengths if target_lengths else plot_reliability)(plot, measured)
    if as_json:
        for record in [result.as_json() for result in measured] + [group.as_json() for group in seeds]:
            print(json.dumps(record))
    else:
        _show(measured, seeds, reports)


def _check_options(cut: str | None, length: int, target_lengths: list[int], part: str, plot: Path | None) -> None:
    from capr.segment.paragraphs import CUTS

    if cut is not None and cut not in CUTS:
        raise CaprError(f"--cut does not accept {cut!r}. Fix: use {', '.join(CUTS)}.")
    if part not in ("all", "test"):
        raise CaprError(f"--part does not accept {part!r}. Fix: use all or test.")
    if cut == "whole" and (length or target_lengths):
        raise CaprError("--cut whole has no length. Fix: leave out --length and --lengths.")
    if length and target_lengths:
        raise CaprError("--length and --lengths exclude each other. Fix: leave out one of them.")
    if plot:
        from capr.evaluate.plots import check_format

        check_format(plot)
        inputs.check_installed("a plot", "matplotlib")


def _parse_lengths(lengths: str | None) -> list[int]:
    parts = [part.strip() for part in lengths.split(",")] if lengths else []
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise CaprError(f"--lengths {lengths!r} is not a list of numbers. Fix: write --lengths 200,400,800.")
    return [int(part) for part in parts]


def _read_reports(data: list[str], part: str, limit: int) -> tuple[list[Report], list[Report]]:
    """Read the reports for the heading counts and the reports to measure on; they differ if `part` is `test`."""
    from capr.evaluate.reports import limited
    from capr.supervise.reports import reports, sample_reports, split

    all_reports = sample_reports() if SAMPLES in data else []
    files = [name for name in data if name != SAMPLES]
    if files:
        inputs.check_questions(files)
        source = inputs.Documents(files, "squad", None, False, False)
        all_reports += reports(source.documents())
    train, test = split(all_reports)
    measured_reports = limited(test if part == "test" else all_reports, limit)
    if not measured_reports:
        fix = "name SQuAD JSON, emrQA's data.json or samples with --data"
        fix += ", or use --part all" if all_reports else ""
        raise CaprError(f"the data have no question to ask. Fix: {fix}.")
    return (train or all_reports) if part == "test" else all_reports, measured_reports


def _load_reader(name: str) -> AnswerReader:
    from capr.search.models import answer_reader

    return answer_reader(None if name == SHIPPED and not Path(name).is_dir() else name)


def _paragraphs(cut: str, length: int, counted: list[Report]) -> Paragraphs:
    from capr.segment.paragraphs import LENGTH, Paragraphs

    if length and cut == "heading":
        return Paragraphs.of_length(cut, length, [report.document for report in counted])
    return Paragraphs(cut, length or LENGTH)


def _measure(readers: list[AnswerReader], reports: list[Report], paragraphs: Paragraphs) -> list[ReaderResult]:
    from capr.evaluate.reports import measure

    results = []
    for reader in readers:
        with inputs.progress("questions") as progress:
            results.append(measure(reader, reports, paragraphs, progress=progress))
    return results


def _write_outcomes(path: Path, results: list[ReaderResult]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for result in results:
            for outcome in result.outcomes:
                line = {"model": result.reader, "cut": result.cut, "length": result.wanted, **outcome.as_json()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _show(results: list[ReaderResult], seeds: list[Spread], reports: list[Report]) -> None:
    from capr.supervise.reports import count

    question_count, unanswerable_count = count(reports)
    console = inputs.terminal()
    console.print(
        f"{inputs.quantity(question_count, 'question')}, {unanswerable_count:,} without an answer, "
        f"about {inputs.quantity(len(reports), 'report')}, in %"
    )
    names = [name for name in COLUMNS if any(name in result.measures for result in results)]
    readers = dict.fromkeys(result.reader for result in results)
    for reader in readers:
        if len(readers) > 1:
            console.print(inputs.printable(reader), style="bold")
        table = _make_table(names)
        for result in results:
            if result.reader == reader:
                table.add_row(result.cut, f"{result.length:,.0f}", *_cells(result.measures, names))
        console.print(table)
    if seeds:
        console.print(f"mean of {len(readers)} models, lowest and highest", style="bold")
        table = _make_table(names)
        for group in seeds:
            table.add_row(group.cut, f"{group.length:,.0f}", *_cells(group.mean, names))
            for label, measures in (("lowest", group.lowest), ("highest", group.highest)):
                table.add_row(label, "", *_cells(measures, names), style="dim")
        console.print(table)


def _make_table(names: list[str]) -> Table:
    """Return an empty table, at most 80 columns wide if paragraphs have fewer than 100,000 characters."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("cut", no_wrap=True)
    for label in ("chars", *(COLUMNS[name] for name in names)):
        table.add_column(label, justify="right", no_wrap=True)
    return table


def _cells(measures: Mapping[str, float], names: list[str]) -> list[str]:
    """Format measures as percentages."""
    return ["100" if measures[name] == 1 else f"{100 * measures[name]:.1f}" for name in names]
