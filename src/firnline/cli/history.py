"""`firnline history`: a table's life day by day, also of what expired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firnline.cli import options
from firnline.cli.output import output_for
from firnline.ops.history.timeline import timeline_page

Since = Annotated[
    str | None, typer.Option("--since", metavar="T", help="From this instant on: ISO 8601 with zone, or ms.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="T", help="Before this instant.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="OUT", help="Draw it too: OUT.svg or OUT.png.")]


def register(app: typer.Typer) -> None:
    app.command("history", short_help="Show a table day by day, and what expired when.")(history)


def history(
    table: options.TableArg,
    since: Since = None,
    until: Until = None,
    plot: Plot = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Show commits, files, records and bytes of TABLE per day, and what expired when. Changes nothing."""
    from firnline.lake import open_lake

    lake, output = open_lake(config), output_for(as_json)
    timeline, trouble = lake.history(table, since=since, until=until, plot=plot)
    output.show(timeline_page(timeline), timeline.to_json())
    if trouble is not None:
        output.fail(trouble)
    return 0 if trouble is None else trouble.exit_code
