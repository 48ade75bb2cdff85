"""`firnline serve`: the page, on this machine unless it is told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firnline.cli.terminal import options
from firnline.model.times import parse_duration

Listen = Annotated[
    str,
    typer.Option("--listen", metavar="PORT|HOST:PORT", help="Where to answer; another host than this needs a token."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="The file with the token for actions; else FIRNLINE_PAGE_TOKEN."),
]
Name = Annotated[
    list[str] | None, typer.Option("--name", metavar="HOST", help="A name by which browsers reach it; repeatable.")
]
Every = Annotated[
    str, typer.Option("--every", metavar="AGE", help="How often all tables are looked at, behind the page.")
]
LocalEngine = Annotated[
    str, typer.Option("--engine", metavar="ENGINE", help="Who opens the metadata: local (threads), spark, or auto.")
]


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    listen: Listen = "127.0.0.1:8765",
    token_file: TokenFile = None,
    name: Name = None,
    every: Every = "10m",
    config: options.Config = None,
    engine: LocalEngine = "local",
) -> None:
    """Serve a web page until Ctrl-C: tables, their graphs before and after a run, plans, runs, savings, and why
    something is still here. It is for this machine alone unless --listen says otherwise. Actions (plan, approve, undo,
    hold, release) take the token; without one nobody may act.
    """
    from firnline.lake import Lake, open_lake
    from firnline.web.serving.starting import Serving, serve_page, token_of

    def opened() -> Lake:
        return open_lake(config, engine=engine)

    serving = Serving(listen, token_of(token_file), tuple(name or ()), parse_duration(every) / 1000, config)
    serve_page(serving, opened)
