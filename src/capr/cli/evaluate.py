"""`capr evaluate NAME`: measure how models rank passages. Every protocol has a command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.cli.options import check_choice, field_parameters, parameters, parse_settings
from capr.documents import CaprError, Document
from capr.evaluate.protocol import CandidateProtocol, LibraryProtocol, Protocol
from capr.evaluate.scorers import load
from capr.evaluate.task import OnTask, Progress, Run, Task

if TYPE_CHECKING:
    from capr.evaluate.measures import Evaluation

MODEL = "bm25, tfidf, encoder, ranker (built in), or a model's folder; a+b fuses, a>b re-ranks."
SPEED = 500_000  # bytes per second on two cores
LIBRARY_MODEL = "bm25, encoder (built in), an encoder's folder, or bm25+encoder; a>ranker re-ranks."
Model = Annotated[list[str], typer.Option("--model", metavar="MODEL", help=MODEL + " Repeat to compare.")]
LibraryModel = Annotated[
    list[str], typer.Option("--model", metavar="MODEL", help=LIBRARY_MODEL + " Repeat to compare.")
]
Queries = Annotated[str, typer.Option("--queries", help="tuple (entity and aspect) or question.")]
RunFile = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="Write the run in TREC's format.")]
Qrels = Annotated[Path | None, typer.Option("--qrels", metavar="FILE", help="Write the qrels in TREC's format.")]
Against = Annotated[
    Path | None, typer.Option("--against", metavar="RUN", help="Compare with a run by a randomisation test.")
]
PerQuery = Annotated[
    Path | None, typer.Option("--per-query", metavar="FILE", help="Write the measures of each query as JSON Lines.")
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw R@k and bars by group: .png or .svg.")]
Entities = Annotated[
    Path | None,
    typer.Option("--entities", metavar="FILE", help="Write the entities of the queries, for capr train --without."),
]
Passages = Annotated[
    Path | None,
    typer.Option("--passages", metavar="JSONL", help="Write the passages, for capr train --without-passages."),
]
Opening = Annotated[bool, typer.Option("--opening", help="Show models each passage under the opening of its document.")]
Boundaries = Annotated[
    str,
    typer.Option("--boundaries", help="given, or hidden: measure how well a discourse model finds boundaries."),
]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Maximum number of queries; 0 for all.")]


@dataclass(frozen=True)
class OutputOptions:
    """The options for output other than the table."""

    run: RunFile = None
    qrels: Qrels = None
    against: Against = None
    per_query: PerQuery = None
    plot: Plot = None
    as_json: inputs.Json = False


@dataclass(frozen=True)
class ModelOptions:
    """The options for the models and the fusion of their rankings."""

    model: Model
    fusion: inputs.Fused = inputs.Fusion.scores


@dataclass(frozen=True)
class LibraryModelOptions(ModelOptions):
    """The same for protocols that search a library, which cannot use every model."""

    model: LibraryModel


@dataclass(frozen=True)
class ExportOptions:
    """The options for exports of the test, which training can leave out."""

    entities: Entities = None
    passages: Passages = None


@dataclass(frozen=True)
class PassageView:
    """The options for how models see the passages of documents."""

    opening: Opening = False
    boundaries: Boundaries = "given"


@dataclass
class EvaluateOptions:
    """All options that the protocols share."""

    models: ModelOptions
    outputs: OutputOptions
    exports: ExportOptions
    view: PassageView
    queries: str
    limit: int


def command(kind: type[Protocol]) -> Callable[..., None]:
    """Return the command of a protocol, with its own options and those of its kind."""
    is_listed = issubclass(kind, CandidateProtocol)
    model_group = ModelOptions if is_listed else LibraryModelOptions
    groups: list[type[Any]] = [model_group, OutputOptions]
    groups += [ExportOptions] if is_listed else []
    groups += [PassageView] if kind.whole else []
    protocol_options = field_parameters(kind)
    options = [*protocol_options, *(option for group in groups for option in parameters(group))]
    options += [_queries_parameter(kind)] if len(kind.forms) > 1 else []
    options += [_limit_parameter()] if kind.limited else []

    def run_protocol(**arguments: Any) -> None:
        protocol = kind(
            **parse_settings(kind, {option.name: arguments.pop(option.name) for option in protocol_options})
        )
        values = {
            group: group(**{field.name: arguments.pop(field.name) for field in fields(group)}) for group in groups
        }
        queries, limit = arguments.pop("queries", kind.forms[0]), arguments.pop("limit", 0)
        check_choice("--queries", queries, tuple(sorted(kind.forms, reverse=True)))
        other_groups = values.get(ExportOptions, ExportOptions()), values.get(PassageView, PassageView())
        _run(protocol, EvaluateOptions(values[model_group], values[OutputOptions], *other_groups, queries, limit))

    run_protocol.__doc__ = cleandoc(kind.__doc__ or "")
    run_protocol.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run_protocol.__annotations__ = {option.name: option.annotation for option in options}
    return run_protocol


def _queries_parameter(kind: type[Protocol]) -> Parameter:
    return Parameter("queries", Parameter.KEYWORD_ONLY, default=kind.forms[0], annotation=Queries)


def _limit_parameter() -> Parameter:
    return Parameter("limit", Parameter.KEYWORD_ONLY, default=0, annotation=Limit)


def _run(protocol: Protocol, options: EvaluateOptions) -> None:
    if isinstance(protocol, CandidateProtocol):
        _check_options(options)
    if options.view.boundaries == "given":
        inputs.check_installed("evaluation", "ir_measures")
    if options.outputs.plot:
        inputs.check_installed("a plot", "matplotlib")
    _check_outputs(options)
    if isinstance(protocol, CandidateProtocol):
        _measure(protocol.task(_documents), options)
        return
    assert isinstance(protocol, LibraryProtocol)
    fusion = options.models.fusion

    def rank(name: str, progress: Progress, on_task: OnTask) -> tuple[Task, Run]:
        return protocol.ask(name, options.queries, fusion, options.limit, progress, on_task)

    _report(rank, options)


def _documents(path: Path, format: str | None, column: Sequence[str]) -> Iterator[Document]:
    """Read the documents of a path, and report problems when they occur."""
    return inputs.Documents([str(path)], format, list(column), False, False, SPEED).documents()


def _check_options(options: EvaluateOptions) -> None:
    """Raise CaprError for options that exclude each other, before reading any data."""
    exports, outputs = options.exports, options.outputs
    if options.limit and (exports.entities or exports.passages):
        raise CaprError("--entities and --passages export the whole test. Fix: leave out --limit.")
    check_choice("--boundaries", options.view.boundaries, ("given", "hidden"))
    if options.view.boundaries == "given":
        return
    values = {
        "--queries question": options.queries != "tuple",
        "--opening": options.view.opening,
        "--fusion": options.models.fusion != inputs.Fusion.scores,
        "--run": outputs.run,
        "--qrels": outputs.qrels,
        "--against": outputs.against,
        "--per-query": outputs.per_query,
        "--plot": outputs.plot,
        "--entities": exports.entities,
        "--passages": exports.passages,
    }
    if unused := [option for option, value in values.items() if value]:
        fact = "--boundaries hidden queries discourse models with pairs, and prints only the F1 of characters"
        raise CaprError(f"{fact}: it does not use {', '.join(unused)}. Fix: leave out {', '.join(unused)}.")


def _check_outputs(options: EvaluateOptions) -> None:
    """Raise CaprError for outputs that need one model or a file that is missing, before reading any data."""
    outputs = options.outputs
    if (outputs.run or outputs.against or outputs.per_query) and len(options.models.model) > 1:
        raise CaprError("--run, --against and --per-query are for one model. Fix: name one with --model.")
    if outputs.against and not outputs.against.is_file():
        raise CaprError(f"there is no {outputs.against}. Fix: name a run that capr evaluate --run wrote.")


def _measure(task: Task, options: EvaluateOptions) -> None:
    whole_task = task
    if options.limit:
        task = replace(task, queries=task.queries[: options.limit])
    if options.view.boundaries == "hidden":
        _measure_cuts(task, options.models.model, options.outputs.as_json)
        return
    viewed_task = task.with_openings() if options.view.opening else task

    def rank(name: str, progress: Progress, on_task: OnTask) -> tuple[Task, Run]:
        on_task(viewed_task)
        return viewed_task, load(name, options.models.fusion).run(viewed_task, options.queries, progress)

    _report(rank, options)
    if path := options.exports.passages:
        lines = (json.dumps({"id": id, "text": text}, ensure_ascii=False) for id, text in whole_task.passages.items())
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    if path := options.exports.entities:
        path.write_text("".join(f"{name}\n" for name in sorted(whole_task.entities)), "utf-8")


def _measure_cuts(task: Task, models: list[str], as_json: bool) -> None:
    """Print how well each model finds the boundaries of answers, by F1 of characters."""
    from capr.evaluate.hidden_boundaries import measure_cuts
    from capr.runtime.discourse import OnnxDiscourse

    table = Table("model", "cut", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("over all candidates", "in the document"):
        table.add_column(name, justify="right")
    for model in models:
        with inputs.progress("documents and queries") as progress:
            cuts = measure_cuts(task, OnnxDiscourse(model), progress)
        for cut in cuts:
            table.add_row(model, cut.way, f"{100 * cut.anywhere:.2f}", f"{100 * cut.in_document:.2f}")
            if as_json:
                values = {"anywhere": cut.anywhere, "in_document": cut.in_document}
                print(json.dumps({"protocol": task.name, "model": model, "cut": cut.way, "f1": values}))
    if not as_json:
        console = inputs.terminal()
        console.print(
            f"{task.name}, boundaries hidden: {inputs.quantity(len(task.queries), 'answer')}, F1 of characters in %"
        )
        console.print(table)


def _report(rank: Callable[[str, Progress, OnTask], tuple[Task, Run]], options: EvaluateOptions) -> None:
    """Measure every model, and print and write the results."""
    models, queries, outputs = options.models.model, options.queries, options.outputs
    from capr.evaluate import measures

    if outputs.plot:
        from capr.evaluate.plots import check_format

        check_format(outputs.plot)
    results: list[tuple[Evaluation, Run]] = []
    task = None
    other_run: Run = {}

    def begin(task: Task) -> None:
        nonlocal other_run
        if results:  # later models have the same task
            return
        for notice in task.notices:
            inputs.terminal(stderr=True).print(f"Notice: {inputs.printable(notice)}")
        if outputs.against:
            other_run = measures.read_run(outputs.against, task)

    for name in models:
        with inputs.progress("queries and passages") as progress:
            task, run = rank(name, progress, begin)
        report = measures.measure(task, run, name, queries)
        results.append((report, run))
        if outputs.as_json:
            print(json.dumps(report.as_json()))
        if outputs.run:
            measures.write_run(run, task, outputs.run, name)
        if outputs.per_query:
            _write_per_query(report, outputs.per_query)
    assert task is not None
    if outputs.qrels:
        measures.write_qrels(task, outputs.qrels)
    if outputs.plot:
        from capr.evaluate.plots import plot as draw

        draw(outputs.plot, task, results)
    if not outputs.as_json:
        _print_table(task, [report for report, _ in results])
    if outputs.against:
        other_report = measures.measure(task, other_run, outputs.against.name, queries)
        _compare(results[0][0], other_report, outputs.as_json)


def _print_table(task: Task, reports: list[Evaluation]) -> None:
    from capr.evaluate.matches import shares

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in reports[0].per_query:
        table.add_column(name, justify="right", no_wrap=True)
    for report in reports:
        table.add_row(report.model, *(f"{100 * value:.2f}" for value in report.measures.values()))
        if len(reports) == 1:
            bounds = [report.interval(name) for name in report.per_query]
            table.add_row("95%", *(f"±{50 * (bound.high - bound.low):.1f}" for bound in bounds))
    console = inputs.terminal()
    query_count = f"{inputs.quantity(len(task.queries), 'query').replace('querys', 'queries')} ({reports[0].queries})"
    console.print(f"{task.name}: {query_count}, {inputs.quantity(len(task.passages), 'passage')}, in %")
    console.print(table)
    for report in reports:
        if report.matches:
            matches = ", ".join(f"{name} {100 * value:.1f}" for name, value in shares(report.matches).items())
            console.print(f"First passage of {report.model} matches, in %: {matches}.")


def _compare(report: Evaluation, other_report: Evaluation, as_json: bool) -> None:
    from capr.evaluate.measures import difference

    for name in report.per_query:
        mean_difference, p = difference(report.per_query[name], other_report.per_query[name])
        if as_json:
            print(json.dumps({"measure": name, "against": other_report.model, "difference": mean_difference, "p": p}))
        else:
            inputs.terminal().print(f"{name}: {100 * mean_difference:+.2f} against {other_report.model}, p = {p:.4f}")


def _write_per_query(report: Evaluation, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for query in next(iter(report.per_query.values())):
            values = {name: by_query[query] for name, by_query in report.per_query.items()}
            groups = {kind: by_query[query] for kind, by_query in report.groups.items() if query in by_query}
            match = {"match": report.matches[query]} if query in report.matches else {}
            line = {"query": query, **groups, **match, "measures": values}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
