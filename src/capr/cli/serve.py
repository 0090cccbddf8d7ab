"""`capr serve`: serve a library over HTTP, with a web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.index.engines import FOLDER, not_a_library, scheme_of


def command(
    library: inputs.LibraryLocation,
    host: Annotated[str, typer.Option("--host", help="The address to listen on. Other addresses need tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any free port.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", min=1, max=256, help="Number of processes.")] = 1,
    require_token: Annotated[
        bool,
        typer.Option("--require-token", help="Require a token even from this machine, for a server behind a proxy."),
    ] = False,
    threads: Annotated[
        int, typer.Option("--threads", min=1, max=256, help="Number of concurrent searches in each process.")
    ] = 4,
    state: Annotated[
        str,
        typer.Option(
            "--state", metavar="FOLDER", help="Tokens, jobs, saved searches and audit trail. Default: LIBRARY.state."
        ),
    ] = "",
    encoder: inputs.Encoder = None,
    discourse: inputs.Discourse = None,
    ranker: Annotated[
        str | None,
        typer.Option("--ranker", metavar="FOLDER", help="The ranker that reorders the best passages, or none."),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="FOLDER", help="The reader. Default: the built-in reader.")
    ] = None,
    vocabulary: inputs.VocabularyTables = None,
    deidentify: Annotated[
        str, typer.Option("--deidentify", metavar="NAME", help="Hide names: rules, or your own module:name.")
    ] = "",
    audit: Annotated[
        str,
        typer.Option(
            "--audit", metavar="FOLDER", help="The audit trail. Default: the audit folder inside the state folder."
        ),
    ] = "",
    audit_queries: Annotated[
        str, typer.Option("--audit-queries", metavar="HOW", help="keep or hash the text of queries in the audit trail.")
    ] = "keep",
    rate: Annotated[
        float,
        typer.Option("--rate", min=0, help="Maximum requests per second of one token or address; 0 for no limit."),
    ] = 50.0,
    burst: Annotated[
        int, typer.Option("--burst", min=1, help="Maximum requests of one token or address at once.")
    ] = 200,
    max_waiting: Annotated[
        int, typer.Option("--max-waiting", min=1, help="Maximum number of requests that wait for a thread.")
    ] = 64,
    max_k: Annotated[
        int, typer.Option("--max-k", min=1, max=10_000, help="Maximum number of hits of one search.")
    ] = 100,
    max_query_length: Annotated[
        int, typer.Option("--max-query-length", min=10, max=100_000, help="Maximum characters of a query.")
    ] = 2000,
    max_upload_mb: Annotated[
        int,
        typer.Option("--max-upload-mb", min=1, max=2000, help="Maximum megabytes of a request that adds documents."),
    ] = 64,
    max_unpacked_mb: Annotated[
        int, typer.Option("--max-unpacked-mb", min=1, max=100_000, help="Maximum megabytes of its unpacked gzip files.")
    ] = 256,
    max_judgements: Annotated[
        int, typer.Option("--max-judgements", min=0, help="Maximum number of stored judgements of each token.")
    ] = 100_000,
    grace: Annotated[
        float, typer.Option("--grace", min=1, help="Seconds for running requests to finish after a stop signal.")
    ] = 30.0,
) -> None:
    """Serve a library over HTTP, with a web page, until it is stopped with Ctrl-C or SIGTERM.

    Until the first token exists, the server answers only requests from this machine, or none with --require-token.
    Create tokens with capr token; from then on, every request needs one. The audit trail records every request for
    data and the documents that it returned, but not /, /docs, /health and /ready; read it with capr audit. Install the
    extra `serve` first.

    Example: capr serve library --port 8000
    """
    try:
        from capr.serve.launcher import serve
        from capr.serve.settings import Settings
    except ImportError as error:
        fix = "pip install 'capr[serve]'"
        raise CaprError(f"serving needs {error.name}, which is not installed. Fix: {fix}.") from error
    is_folder = scheme_of(library) == FOLDER
    if is_folder and not Path(library).is_dir():
        raise not_a_library(Path(library))
    settings = Settings(
        library=_absolute(library) if is_folder else library,
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        encoder=encoder,
        discourse=discourse,
        ranker=ranker,
        reader=reader,
        deidentify=deidentify,
        audit=_absolute(audit),
        vocabulary=tuple(str(path.absolute()) for path in vocabulary or ()),
        audit_queries=audit_queries,
        rate=rate,
        burst=burst,
        max_waiting=max_waiting,
        max_k=max_k,
        max_query_length=max_query_length,
        max_upload=max_upload_mb * 1_000_000,
        max_unpacked=max_unpacked_mb * 1_000_000,
        max_judgements=max_judgements,
        grace=grace,
        require_token=require_token,
        state=_absolute(state),
    )
    code = serve(settings, lambda address: print(f"Serving {library} at {address}", flush=True))
    if code:
        raise typer.Exit(code)


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""
