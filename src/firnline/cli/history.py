"""`firnline history`: a table's life day by day, also of what expired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.several import show_timelines
from firnline.cli.terminal import options
from firnline.cli.terminal.opening import looking_lake, several_of
from firnline.cli.terminal.output import output_for
from firnline.errors import UsageError

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="T", help="From then on: an age (90d), a date, ISO 8601 with a zone, or epoch ms."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="T", help="Before this date or instant.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="OUT", help="Draw it too: OUT.svg or OUT.png.")]


def register(app: typer.Typer) -> None:
    app.command("history")(history)


def history(
    tables: options.TablesArg = None,
    every: options.AllTables = False,
    at_once: options.AtOnce = AT_ONCE,
    since: Since = None,
    until: Until = None,
    plot: Plot = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Show commits, files, records and bytes of TABLE per day, and what expired when; several tables get one line each.
    Changes nothing.
    """
    from firnline.ops.history.timeline import timeline_page

    one, begin = options.the_one(tables, every), options.since(since)
    lake, output = looking_lake(config, "auto", as_json), output_for(as_json)
    if one is None:
        if plot is not None:
            raise UsageError("--plot draws one table", hint="name that table alone")
        named = None if every else tables
        found = several_of(lake, named, at_once).history(since=begin, until=until)
        return show_timelines(list(found), as_json)
    timeline, trouble = lake.history(one, since=begin, until=until, plot=plot)
    output.show(timeline_page(timeline), timeline.to_json())
    if trouble is not None:
        output.fail(trouble)
    return 0 if trouble is None else trouble.exit_code
