"""`capr evaluate medquad`, `wikisection`, `notes`, `beir` and `samples`: how well does a model find the answer?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.cli.options import spread
from capr.documents import CaprError

if TYPE_CHECKING:
    from capr.evaluate.measures import Report
    from capr.evaluate.scorers import Progress, Run
    from capr.evaluate.task import Task

MODEL = "bm25, tfidf, encoder, ranker (those that ship), or a model's folder; a+b fuses, a>b re-ranks."
LABELLING = 500_000  # bytes a second on two cores
Data = Annotated[Path, typer.Option("--data", metavar="PATH", help="The data set.")]
Model = Annotated[list[str], typer.Option("--model", metavar="MODEL", help=MODEL + " May be repeated, to compare.")]
Queries = Annotated[str, typer.Option("--queries", help="tuple (entity and aspect) or question.")]
RunFile = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="Write the ranking in TREC's format.")]
Qrels = Annotated[Path | None, typer.Option("--qrels", metavar="FILE", help="Write what is relevant in TREC's format.")]
Against = Annotated[
    Path | None, typer.Option("--against", metavar="RUN", help="A run to compare with, by a randomisation test.")
]
PerQuery = Annotated[
    Path | None, typer.Option("--per-query", metavar="FILE", help="Write the measures of each query as JSON Lines.")
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw R@k and bars by group: .png or .svg.")]
Entities = Annotated[
    Path | None, typer.Option("--entities", metavar="FILE", help="Write what is asked about, for capr train --without.")
]
Passages = Annotated[
    Path | None,
    typer.Option("--passages", metavar="JSONL", help="Write the passages, for capr train --without-passages."),
]
Opening = Annotated[bool, typer.Option("--opening", help="Show models each passage under the opening of its document.")]
Boundaries = Annotated[
    str,
    typer.Option("--boundaries", help="given, or hidden: how well does a discourse model cut the answer out?"),
]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Ask only so many queries; 0 for all.")]


@dataclass(frozen=True)
class Wanted:
    """What is to be written besides the table."""

    run: RunFile = None
    qrels: Qrels = None
    against: Against = None
    per_query: PerQuery = None
    plot: Plot = None
    as_json: inputs.Json = False


@dataclass(frozen=True)
class Asking:
    """Which models are asked for what, and what of the test is to be written."""

    data: Data
    model: Model
    queries: Queries = "tuple"
    limit: Limit = 0
    fusion: inputs.Fused = inputs.Fusion.scores
    entities: Entities = None
    passages: Passages = None


@spread
def medquad(asking: Asking, wanted: Wanted, opening: Opening = False, boundaries: Boundaries = "given") -> None:
    """MedQuAD's test by the protocol of CDV and CAPR: 3,293 queries, at most 64 candidates each.

    --data is a folder with medquad (the XML files) and cdv (the annotations).

    Example: capr evaluate medquad --data data --model bm25
    """
    from capr.evaluate.medquad import load

    _suits(boundaries, asking, wanted, opening)
    _measure(load(asking.data), asking, wanted, opening, boundaries)


@spread
def wikisection(asking: Asking, wanted: Wanted, opening: Opening = False, boundaries: Boundaries = "given") -> None:
    """Sections of articles, asked for by title and label as in CDV; of JSON Lines, a fifth of the articles.

    --data is WikiSectionQA's or WikiSection's JSON, or articles as JSON Lines.

    Example: capr evaluate wikisection --data articles.jsonl --model bm25
    """
    from capr.evaluate.wikisection import load

    _suits(boundaries, asking, wanted, opening)
    _measure(load(asking.data), asking, wanted, opening, boundaries)


@spread
def notes(
    asking: Asking,
    wanted: Wanted,
    shown: Annotated[bool, typer.Option("--shown/--hidden", help="Whether models see a passage's heading.")] = False,
    part: Annotated[str, typer.Option("--part", help="test (a fifth of the notes) or all.")] = "test",
    seed: Annotated[int, typer.Option("--seed", help="Of the queries and candidates that are drawn.")] = 0,
    format: inputs.Format = None,
    column: inputs.Column = None,
) -> None:
    """Clinical notes as in CAPR: a query per passage from its own labels, that passage and 63 others at random.

    --data is notes in any format. bm25-top and tfidf-top keep only what is among the best 64 of all passages.

    Example: capr evaluate notes --data notes.jsonl --model bm25
    """
    from capr.evaluate.notes import load

    if part not in ("test", "all"):
        raise CaprError(f"--part knows no {part!r}. Fix: use test or all.")
    source = inputs.Documents([str(asking.data)], format, column, False, False, LABELLING)
    _measure(load(source.documents(), shown, part, seed), asking, wanted)


@spread
def beir(
    data: Data, model: Model, wanted: Wanted, limit: Limit = 0, fusion: inputs.Fused = inputs.Fusion.scores
) -> None:
    """Any BEIR folder through a library: every query over the whole corpus.

    --data has corpus.jsonl, queries.jsonl and qrels.tsv or qrels/test.tsv.

    Example: capr evaluate beir --data scifact --model bm25+encoder
    """
    from capr.evaluate.through_library import beir as through

    def asked(name: str, progress: Progress) -> tuple[Task, Run]:
        return through(data, name, progress, limit=limit, fusion=fusion)

    _report(asked, model, "question", wanted)


@spread
def samples(
    model: Model, wanted: Wanted, queries: Queries = "question", fusion: inputs.Fused = inputs.Fusion.scores
) -> None:
    """The questions that ship, through a library.

    Example: capr evaluate samples --model bm25
    """
    from capr.evaluate.through_library import shipped_samples

    _form(queries)

    def asked(name: str, progress: Progress) -> tuple[Task, Run]:
        return shipped_samples(name, queries, progress, fusion)

    _report(asked, model, queries, wanted)


def _form(queries: str) -> None:
    from capr.evaluate.task import FORMS

    if queries not in FORMS:
        raise CaprError(f"--queries knows no {queries!r}. Fix: use {' or '.join(FORMS)}.")


def _suits(boundaries: str, asking: Asking, wanted: Wanted, opening: bool) -> None:
    """Complains of options that --boundaries hidden has no use for, before anything is read."""
    _form(asking.queries)
    if boundaries not in ("given", "hidden"):
        raise CaprError(f"--boundaries knows no {boundaries!r}. Fix: use given or hidden.")
    if boundaries == "given":
        return
    given = {
        "--queries question": asking.queries != "tuple", "--opening": opening,
        "--fusion": asking.fusion != inputs.Fusion.scores, "--run": wanted.run, "--qrels": wanted.qrels,
        "--against": wanted.against, "--per-query": wanted.per_query, "--plot": wanted.plot,
        "--entities": asking.entities, "--passages": asking.passages,
    }  # fmt: skip
    if unused := [option for option, value in given.items() if value]:
        fact = "--boundaries hidden asks discourse models for pairs, and prints F1 of characters alone"
        raise CaprError(f"{fact}: it does not use {', '.join(unused)}. Fix: leave out {', '.join(unused)}.")


def _measure(task: Task, asking: Asking, wanted: Wanted, opening: bool = False, boundaries: str = "given") -> None:
    from capr.evaluate.scorers import load

    _form(asking.queries)
    if asking.limit and (asking.entities or asking.passages):
        raise CaprError("--entities and --passages are of the whole test. Fix: leave out --limit.")
    if asking.limit:
        task = replace(task, asked=task.asked[: asking.limit])
    if boundaries == "hidden":
        _cut(task, asking.model, wanted.as_json)
        return
    read = task.with_openings() if opening else task

    def asked(name: str, progress: Progress) -> tuple[Task, Run]:
        return read, load(name, asking.fusion).run(read, asking.queries, progress)

    _report(asked, asking.model, asking.queries, wanted)
    if asking.passages:
        lines = (json.dumps({"id": id, "text": text}, ensure_ascii=False) for id, text in task.passages.items())
        asking.passages.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    if asking.entities:
        asking.entities.write_text("".join(f"{name}\n" for name in sorted(task.entities)), "utf-8")


def _cut(task: Task, models: list[str], as_json: bool) -> None:
    """Shows how well each model cuts answers out of documents, by F1 of characters."""
    from capr.evaluate.hidden import hidden
    from capr.index.discourse import load_discourse

    table = Table("model", "cut", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("over all candidates", "in the document"):
        table.add_column(name, justify="right")
    for model in models:
        with inputs.progress("documents and queries") as progress:
            cuts = hidden(task, load_discourse(model), progress)
        for cut in cuts:
            table.add_row(model, cut.way, f"{100 * cut.anywhere:.2f}", f"{100 * cut.in_document:.2f}")
            if as_json:
                values = {"anywhere": cut.anywhere, "in_document": cut.in_document}
                print(json.dumps({"protocol": task.name, "model": model, "cut": cut.way, "f1": values}))
    if not as_json:
        console = inputs.terminal()
        console.print(
            f"{task.name}, boundaries hidden: {inputs.counted(len(task.asked), 'answer')}, F1 of characters in %"
        )
        console.print(table)


def _report(
    asked: Callable[[str, Progress], tuple[Task, Run]], models: list[str], queries: str, wanted: Wanted
) -> None:
    """Asks every model, and shows and writes what was measured."""
    try:
        from capr.evaluate import measures
    except ImportError as error:
        raise CaprError(f"evaluation needs {error.name}. Fix: pip install 'capr[evaluate]'.") from error
    if (wanted.run or wanted.against or wanted.per_query) and len(models) > 1:
        raise CaprError("--run, --against and --per-query are for one model. Fix: name one with --model.")
    if wanted.plot:
        from capr.evaluate.plots import suits

        suits(wanted.plot)
    if wanted.against and not wanted.against.is_file():
        raise CaprError(f"there is no {wanted.against}. Fix: name a run that capr evaluate --run has written.")
    measured = []
    task = None
    for name in models:
        with inputs.progress("queries and passages") as progress:
            task, found = asked(name, progress)
        report = measures.measure(task, found, name, queries)
        measured.append((report, found))
        if wanted.as_json:
            print(json.dumps(report.as_json()))
        if wanted.run:
            measures.write_run(found, task, wanted.run, name)
        if wanted.per_query:
            _write_per_query(report, wanted.per_query)
    assert task is not None
    if wanted.qrels:
        measures.write_qrels(task, wanted.qrels)
    if wanted.plot:
        from capr.evaluate.plots import plot as draw

        draw(wanted.plot, task, measured)
    if not wanted.as_json:
        _table(task, [report for report, _ in measured])
    if wanted.against:
        other = measures.measure(task, measures.read_run(wanted.against, task), wanted.against.name, queries)
        _compare(measured[0][0], other, wanted.as_json)


def _table(task: Task, reports: list[Report]) -> None:
    from capr.evaluate.matches import shares

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in reports[0].per_query:
        table.add_column(name, justify="right", no_wrap=True)
    for report in reports:
        table.add_row(report.model, *(f"{100 * value:.2f}" for value in report.measures.values()))
        if len(reports) == 1:
            bounds = [report.interval(name) for name in report.per_query]
            table.add_row("95 %", *(f"±{50 * (bound.high - bound.low):.1f}" for bound in bounds))
    console = inputs.terminal()
    asked = f"{inputs.counted(len(task.asked), 'query').replace('querys', 'queries')} ({reports[0].queries})"
    console.print(f"{task.name}: {asked}, {inputs.counted(len(task.passages), 'passage')}, in %")
    console.print(table)
    for report in reports:
        if report.matches:
            found = ", ".join(f"{name} {100 * value:.1f}" for name, value in shares(report.matches).items())
            console.print(f"First passage of {report.model} matches, in %: {found}.")


def _compare(one: Report, other: Report, as_json: bool) -> None:
    from capr.evaluate.measures import difference

    for name in one.per_query:
        gap, chance = difference(one.per_query[name], other.per_query[name])
        if as_json:
            print(json.dumps({"measure": name, "against": other.model, "difference": gap, "p": chance}))
        else:
            inputs.terminal().print(f"{name}: {100 * gap:+.2f} against {other.model}, p = {chance:.4f}")


def _write_per_query(report: Report, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for query in next(iter(report.per_query.values())):
            values = {name: found[query] for name, found in report.per_query.items()}
            groups = {kind: found[query] for kind, found in report.groups.items() if query in found}
            match = {"match": report.matches[query]} if query in report.matches else {}
            line = {"query": query, **groups, **match, "measures": values}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
