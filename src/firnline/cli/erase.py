"""`firnline erase`: a data file that must go everywhere, from the live table and from every tier."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.asking import ask
from firnline.cli.terminal.opening import lake_of
from firnline.cli.terminal.output import output_for
from firnline.cli.tiers import Days, NoWait, Speed
from firnline.errors import RefusedForSafety
from firnline.model.times import minute
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, size

if TYPE_CHECKING:
    from firnline.ops.erasure.finding import TableLoss
    from firnline.ops.erasure.report import ErasedFrom, ErasurePlan, ErasureReport

FilesArg = Annotated[list[str], typer.Argument(metavar="FILE...", help="Data files, as the live table names them.")]
Case = Annotated[str | None, typer.Option("--case", metavar="CASE", help="What it is for; without it nothing goes.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who erases; without it nothing goes.")]
_SHOWN = 20


def register(app: typer.Typer) -> None:
    app.command("erase")(erase)


def erase(
    table: options.TableArg,
    files: FilesArg,
    case: Case = None,
    by: By = None,
    grace: options.Grace = None,
    speed: Speed = "bulk",
    days: Days = 7,
    no_wait: NoWait = False,
    yes: options.Yes = False,
    everything: options.Everything = False,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Show which snapshots of TABLE, of the live table and of every tier, lose FILE; with --case and --by, take it out
    of them and delete it everywhere. The snapshots stay, with all their other files. It cannot be undone.

    The same command, given again, goes on where it stopped: after grace, or when bundles of a deep tier came.
    """
    from firnline.app.requests import age_ms
    from firnline.ops.tiers.waking import Inquiry

    lake, files = lake_of(config, engine, as_json), [_from_here(each) for each in files]
    if case is None and by is None:
        plan = lake.erasures.plan(table, files)
        output_for(as_json).show(erasure_page(plan, everything), plan.to_json())
        return 0
    asked = Inquiry(case or "", by or "", speed, days, not no_wait)
    grace_ms = None if grace is None else age_ms(grace)

    def confirm(plan: ErasurePlan) -> None:
        if not yes:
            what = f"{counted(len(plan.files), 'file')} from every snapshot of {table}, live and in tiers"
            ask(erasure_page(plan, everything), f"Erase {what}? It cannot be undone.", as_json)

    report = lake.erasures.carry_out(table, files, asked, grace_ms, confirm)
    output_for(as_json).show(_report_page(report), report.to_json())
    return RefusedForSafety.exit_code if any(each.left for each in report.tables) else 0


def _from_here(file: str) -> str:
    """Returns a file that is named from this folder by its whole path; any other as it is named."""
    return os.path.abspath(file) if not file.startswith("/") and os.path.isfile(file) else file


def erasure_page(plan: ErasurePlan, everything: bool = False) -> Page:
    """Returns what a person reads before anything is erased."""
    return Page(tuple(_plan_blocks(plan, everything)))


def _plan_blocks(plan: ErasurePlan, everything: bool) -> Iterator[Block]:
    yield Line(f"erase {counted(len(plan.files), 'file')}: {', '.join(plan.files[:3])}{' …' if plan.files[3:] else ''}")
    for each in plan.tables:
        yield from _loss_blocks(each, everything)
    yield from (Line(f"note: {note}") for note in plan.notes)
    yield Line("nothing was changed")
    if not any(each.refused for each in plan.tables):
        yield Hint("the same with --case CASE --by NAME carries it out; it asks first, and it cannot be undone")


def _loss_blocks(loss: TableLoss, everything: bool) -> Iterator[Block]:
    from firnline.ops.erasure.finding import newest_first, refs_of

    state, naming = loss.state, loss.naming
    if loss.is_nothing:
        yield Line(f"{loss.tier}, {state.table}: no snapshot names it")
        return
    rows = sum(each.rows for each in naming.files)
    held = f"{size(sum(each.size for each in naming.files))}, {rows:,} rows"
    how_many = f"{counted(len(naming.losing), 'snapshot')} of {len(state.graph):,}"
    yield Line(f"{loss.tier}, {state.table}: {held}, lost by {how_many}")
    losing = newest_first(state, naming.losing)
    shown = losing if everything else losing[:_SHOWN]
    yield Grid(
        tuple((each, minute(state.graph[each].timestamp_ms), ", ".join(refs_of(state, each))) for each in shown),
        ("loses it", "time (UTC)", "refs"),
    )
    if len(losing) > len(shown):
        yield Line(f"  … and {len(losing) - len(shown):,} older (--list shows them)")
    if naming.mentioning:
        yield Line(f"  only told to have taken it out: by {counted(len(naming.mentioning), 'snapshot')} more")
    yield Line(f"  to be rewritten: {counted(len(naming.units), 'manifest')}, {len(naming.snapshots):,} manifest lists")
    if loss.bundles:
        yield Line(f"  it lies in {counted(len(loss.bundles), 'bundle')}, to be packed anew without it")
    if loss.refused:
        yield Line(f"  a run would refuse: {loss.refused}")


def _report_page(report: ErasureReport) -> Page:
    blocks = [block for each in report.tables for block in _report_blocks(each)]
    if not report.is_done:
        blocks.append(Hint("the same command, given again, goes on"))
    return Page(tuple(blocks))


def _report_blocks(done: ErasedFrom) -> Iterator[Block]:
    where = f"{done.tier}, {done.table}"
    if done.run is None:
        yield Line(f"{where}: no snapshot names it")
    else:
        waits = f", waits for {done.run.waits_told}" if done.run.waits else ""
        yield Line(f"{where}: {done.run.id} is {done.run.state}{waits}")
    if done.awaited is not None:
        yield Line(f"  bundles that can be read: {done.awaited.readable:,} of {done.awaited.bundles.files:,}")
    if done.repacked:
        yield Line(f"  packed anew without it: {counted(done.repacked, 'bundle')}")
    if done.came:
        yield Line(f"  came meanwhile and have it: {counted(len(done.came), 'snapshot')}")
    for path in done.left:
        yield Line(f"  still there: {path}")
        yield Hint("`firnline why TABLE PATH` tells what needs it; `firnline orphans TABLE` removes it if nothing does")
