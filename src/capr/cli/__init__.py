"""The command line: one file per command, one line here for each."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

import capr
from capr.cli import (
    annotate,
    ask,
    audit,
    compact,
    encode,
    evaluate_entities,
    evaluate_latency,
    evaluate_reports,
    evaluate_retrieval,
    explain,
    export,
    headings,
    index,
    questions,
    read,
    remove,
    samples,
    search,
    segment,
    serve,
    stats,
    suggest,
    supervise,
    token,
    train_cdv,
    train_reader,
    train_retrieval,
    train_tagger,
    verify,
)
from capr.documents import CaprError

typer_app = typer.Typer(
    name="capr",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
typer_app.command("read")(read.command)
typer_app.command("segment")(segment.command)
typer_app.command("headings")(headings.command)
typer_app.command("annotate")(annotate.command)
typer_app.command("suggest")(suggest.command)
typer_app.command("supervise")(supervise.command)
typer_app.command("questions")(questions.command)
typer_app.command("index")(index.command)
typer_app.command("search")(search.command)
typer_app.command("ask")(ask.command)
typer_app.command("explain")(explain.command)
typer_app.command("serve")(serve.command)
typer_app.command("audit")(audit.command)
typer_app.command("remove")(remove.command)
typer_app.command("encode")(encode.command)
typer_app.command("stats")(stats.command)
typer_app.command("verify")(verify.command)
typer_app.command("compact")(compact.command)
typer_app.command("export")(export.command)
typer_app.command("samples")(samples.command)

token_app = typer.Typer(help="Say who may ask a server.", no_args_is_help=True, rich_markup_mode=None)
token_app.command("create")(token.create)
token_app.command("list")(token.show)
token_app.command("revoke")(token.revoke)
typer_app.add_typer(token_app, name="token")
train_app = typer.Typer(help="Train a model.", no_args_is_help=True, rich_markup_mode=None)
train_app.command("bi")(train_retrieval.bi)
train_app.command("poly")(train_retrieval.poly)
train_app.command("cross")(train_retrieval.cross)
train_app.command("cdv")(train_cdv.command)
train_app.command("reader")(train_reader.command)
train_app.command("tagger")(train_tagger.command)
train_app.callback()(lambda: None)
typer_app.add_typer(train_app, name="train")
evaluate_app = typer.Typer(help="Measure a model.", no_args_is_help=True, rich_markup_mode=None)
evaluate_app.command("medquad")(evaluate_retrieval.medquad)
evaluate_app.command("wikisection")(evaluate_retrieval.wikisection)
evaluate_app.command("notes")(evaluate_retrieval.notes)
evaluate_app.command("beir")(evaluate_retrieval.beir)
evaluate_app.command("samples")(evaluate_retrieval.samples)
evaluate_app.command("reports")(evaluate_reports.command)
evaluate_app.command("latency")(evaluate_latency.command)
evaluate_app.command("entities")(evaluate_entities.command)
evaluate_app.callback()(lambda: None)
typer_app.add_typer(evaluate_app, name="evaluate")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"capr {capr.__version__}")
        raise typer.Exit


@typer_app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it and stop.")
    ] = False,
) -> None:
    """Find the passage that answers a clinical question, and show exactly where it stands."""


def app() -> None:
    """Runs a command. Exit codes: 0 all is well, 1 some input could not be read, 2 the command was not understood."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # whatever the locale says, nothing is lost
    try:
        typer_app()
    except CaprError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, capr.ReadError) else 2)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, a folder that may not be written
        print(
            f"Error: {error.filename or 'output'}: {error.strerror}. Fix: check the path and the disk.", file=sys.stderr
        )
        sys.exit(2)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
