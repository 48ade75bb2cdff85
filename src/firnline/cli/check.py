"""`firnline check`: is every needed file there, and what does a store really do?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli import options
from firnline.cli.output import output_for, progress_for
from firnline.errors import UsageError
from firnline.ops.looking.check import Checked
from firnline.ops.table.context import unfit
from firnline.plans.pages import Block, Grid, Line, Page, counted, size

if TYPE_CHECKING:
    from firnline.ports.probe import StoreVerdicts

_UNSOUND = 1


def register(app: typer.Typer) -> None:
    app.command("check", short_help="Look whether every file that a table needs exists.")(check)


def check(
    table: options.TableArg,
    uri: Annotated[str | None, typer.Argument(metavar="URI", help="With the word store as TABLE: a location.")] = None,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Look whether every file that each snapshot of TABLE needs exists, with its size, and whether the table still has
    the schemas and partition specs to read them with. Exit code 1 if not.

    `firnline check store URI` finds out what the store at a location really does: what is permitted, whether its
    conditional writes and deletes can be trusted, its clock, versions and locks. It writes a few small objects of its
    own under URI/_firnline/probe and removes them again. Exit code 1 if no run could work there.
    """
    if table == "store" and uri is not None:
        return _check_store(uri, config, as_json)
    if uri is not None:
        raise UsageError(f"one table at a time: {table} or {uri}", hint="`firnline check store URI` checks a store")
    from firnline.lake import open_lake

    checked = open_lake(config, engine=engine, progress=progress_for(as_json), trust=trust or ()).check(table)
    output_for(as_json).show(Page(tuple(_blocks(checked))), checked.to_json())
    return 0 if checked.sound else _UNSOUND


def _check_store(uri: str, config: str | None, as_json: bool) -> int:
    from firnline.lake import open_lake

    found = open_lake(config).check_store(uri)
    fit = not unfit(found, deletes=True)
    output_for(as_json).show(Page(tuple(_store_blocks(found, fit))), {**found.to_json(), "fit": fit})
    return 0 if fit else _UNSOUND


def _store_blocks(found: StoreVerdicts, fit: bool) -> Iterator[Block]:
    yield Line(found.place)
    yield Grid(tuple((name, each.verdict.value, each.evidence) for name, each in found.findings().items()))
    yield Grid(tuple((what, path) for what, path in found.paths().items()))
    for warning in found.surroundings.warnings():
        yield Line(f"note: {warning}")
    yield Line("runs can work here" if fit else "no run could work here")


def _blocks(checked: Checked) -> Iterator[Block]:
    presence = checked.presence
    looked = f"{counted(presence.looked_at, 'file')}, {size(presence.bytes)}, {counted(checked.snapshots, 'snapshot')}"
    yield Line(f"{checked.table}: looked at {looked}")
    if checked.sound:
        yield Line("every file is there")
        return
    yield Line(f"not as the table says: {counted(presence.faults, 'fault')}")
    yield Grid(tuple((each.problem, each.kind, each.path) for each in presence.listed))
