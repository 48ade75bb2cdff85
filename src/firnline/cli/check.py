"""`firnline check`: is every needed file there?"""

from __future__ import annotations

from collections.abc import Iterator

import typer

from firnline.cli import options
from firnline.cli.output import output_for
from firnline.cli.progress import progress_for
from firnline.ops.check import Checked
from firnline.plans.pages import Block, Grid, Line, Page
from firnline.plans.wording import counted, size

_UNSOUND = 1


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    table: options.TableArg,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Look whether every file that each snapshot of TABLE needs exists, with its size. Exit code 1 if not."""
    from firnline.app import open_lake

    checked = open_lake(config, engine=engine, progress=progress_for(as_json)).check(table)
    output_for(as_json).show(Page(tuple(_blocks(checked))), checked.to_json())
    return 0 if checked.sound else _UNSOUND


def _blocks(checked: Checked) -> Iterator[Block]:
    presence = checked.presence
    looked = f"{counted(presence.looked_at, 'file')}, {size(presence.bytes)}, {counted(checked.snapshots, 'snapshot')}"
    yield Line(f"{checked.table}: looked at {looked}")
    if checked.sound:
        yield Line("every file is there")
        return
    yield Line(f"not as the table says: {counted(presence.faults, 'file')}")
    yield Grid(tuple((each.problem, each.kind, each.path) for each in presence.listed))
