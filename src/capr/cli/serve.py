"""`capr serve`: the library over HTTP, and the web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError


def command(
    library: inputs.LibraryFolder,
    host: Annotated[str, typer.Option("--host", help="Where to listen; elsewhere than here only with tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", min=1, max=256, help="Processes.")] = 1,
    require_token: Annotated[
        bool,
        typer.Option("--require-token", help="Answer nobody without a token, not even this machine: behind a proxy."),
    ] = False,
    threads: Annotated[
        int, typer.Option("--threads", min=1, max=256, help="That search at the same time, in each process.")
    ] = 4,
    encoder: inputs.Encoder = None,
    discourse: inputs.Discourse = None,
    ranker: Annotated[
        str | None,
        typer.Option("--ranker", metavar="FOLDER", help="Re-ranks the best passages; none for none."),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="FOLDER", help="Reads the answers, if not the one that ships.")
    ] = None,
    vocabulary: inputs.VocabularyTables = None,
    deidentify: Annotated[
        str, typer.Option("--deidentify", metavar="NAME", help="Hide names: rules, or a module:name of your own.")
    ] = "",
    audit: Annotated[
        str, typer.Option("--audit", metavar="FOLDER", help="Of the audit trail, if not audit in the library.")
    ] = "",
    audit_queries: Annotated[
        str, typer.Option("--audit-queries", metavar="HOW", help="keep their text in it, or hash it.")
    ] = "keep",
    rate: Annotated[
        float, typer.Option("--rate", min=0, help="Requests a second of one token or address; 0 for any number.")
    ] = 50.0,
    burst: Annotated[int, typer.Option("--burst", min=1, help="Requests of one token or address at once.")] = 200,
    waiting: Annotated[int, typer.Option("--waiting", min=1, help="Requests that may wait for a thread.")] = 64,
    largest_k: Annotated[int, typer.Option("--largest-k", min=1, max=10_000, help="Hits of one search.")] = 100,
    longest_query: Annotated[
        int, typer.Option("--longest-query", min=10, max=100_000, help="Characters of a query.")
    ] = 2000,
    upload: Annotated[
        int, typer.Option("--upload", min=1, max=2000, help="Megabytes of a request that adds documents.")
    ] = 64,
    unpacked: Annotated[
        int, typer.Option("--unpacked", min=1, max=100_000, help="Megabytes that its gzip files may unpack to.")
    ] = 256,
    feedback: Annotated[
        int, typer.Option("--feedback", min=0, help="Judgements of passages that are kept of each token.")
    ] = 100_000,
    grace: Annotated[
        float, typer.Option("--grace", min=1, help="Seconds that what runs may take to end when it is stopped.")
    ] = 30.0,
) -> None:
    """Serve a library over HTTP, with a web page, until it is stopped with Ctrl-C or SIGTERM.

    Without a token, only this machine is served; with --require-token, nobody is. capr token makes tokens, and then
    every request needs one. Whatever is asked and shown stands in an audit trail, which capr audit reads. Needs the
    extra `serve`.

    Example: capr serve library --port 8000
    """
    try:
        from capr.serve.run import serve
        from capr.serve.settings import Settings
    except ImportError as error:
        fix = "pip install 'capr[serve]'"
        raise CaprError(f"serving needs {error.name}, which is not installed. Fix: {fix}.") from error
    if not library.is_dir():
        raise CaprError(f"there is no library {library}. Fix: make one with capr index {library} FILE...")
    settings = Settings(
        library=str(library.absolute()), host=host, port=port, workers=workers, threads=threads, encoder=encoder,
        discourse=discourse, ranker=ranker, reader=reader, deidentify=deidentify, audit=_absolute(audit),
        vocabulary=tuple(str(path.absolute()) for path in vocabulary or ()), audit_queries=audit_queries, rate=rate,
        burst=burst, waiting=waiting, largest_k=largest_k, longest_query=longest_query, upload=upload * 1_000_000,
        unpacked=unpacked * 1_000_000, feedback=feedback, grace=grace, require_token=require_token,
    )  # fmt: skip
    code = serve(settings, lambda address: print(f"{library} is served at {address}", flush=True))
    if code:
        raise typer.Exit(code)


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""
