"""`firnline iam`: the least permissions that a command needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import output_for
from firnline.plans.pages import Block, Grid, Hint, Line, Page

if TYPE_CHECKING:
    from firnline.ops.looking.permissions import Grant, Permissions

_STORE = "s3, gs or abfs; a table's own where --table is given."


def register(app: typer.Typer) -> None:
    app.command("iam")(iam)


def iam(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="A command, such as expire or hold add.")],
    store: Annotated[str, typer.Option("--store", metavar="STORE", help=_STORE)] = "s3",
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="For this very table.")] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Show the least permissions that COMMAND needs on the object store and the catalog."""
    from firnline.ops.looking.permissions import permissions

    asked = " ".join(command)
    if table is None:  # nothing is read for this: it answers also where the configuration is damaged
        said = permissions(asked, store, None)
    else:
        from firnline.lake import open_lake

        said = open_lake(config).permissions(asked, store, table)
    output_for(as_json).show(Page(tuple(_blocks(said))), said.to_json())


def _blocks(said: Permissions) -> Iterator[Block]:
    from firnline.ops.looking.permissions import HELPS

    yield Line(f"firnline {said.command}, on {said.store}")
    if said.policy is not None:
        yield from (Line(each) for each in json.dumps(said.policy, indent=2).splitlines())
    elif said.needed:
        yield Grid(tuple(_rows(said.needed)), ("may", "permission", "on"))
    else:
        yield Line("no permission on the object store")
    yield Line(f"catalog: {said.catalog}")
    for each in said.helpful:
        yield Hint(f"with {', '.join(each.actions)} on {', '.join(each.folders)}, {HELPS[each.verb]}")


def _rows(needed: tuple[Grant, ...]) -> Iterator[tuple[str, ...]]:
    for each in needed:
        for action in each.actions:
            yield each.verb.value, action, ", ".join(each.folders)
