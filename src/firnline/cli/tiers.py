"""`firnline archive` and `firnline tiers`: handing history to colder storage, and where it lives."""

from __future__ import annotations

import typer

from firnline.app.tiers import HandedSnapshots
from firnline.cli import options
from firnline.cli.output import output_for, progress_for
from firnline.ops.tiers.whereabouts import tiers_page
from firnline.plans.pages import Block, Hint, Line, Page, counted, tally


def register(app: typer.Typer) -> None:
    app.command("archive", short_help="Hand what a run would expire to the table's tier. Expires nothing.")(archive)
    app.command("tiers", short_help="Show in which tier each snapshot lives, and what that costs.")(tiers)


def archive(
    table: options.TableArg,
    older_than: options.OlderThan = None,
    retain_last: options.RetainLast = None,
    now: options.Now = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Hand the snapshots of TABLE that a run would expire now to the tier that its policy names, complete and verified.
    The live table is not changed: `firnline expire` does that after handing over.
    """
    from firnline.lake import open_lake

    lake = open_lake(config, engine=engine, progress=progress_for(as_json))
    handed = lake.archive(table, older_than=older_than, retain_last=retain_last, now=now)
    output_for(as_json).show(_page(handed), handed.to_json())


def tiers(
    table: options.TableArg,
    everything: options.Everything = False,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Show where each known snapshot of TABLE lives: in the live table, in a tier, or nowhere any more; and what each
    tier holds. Changes nothing.
    """
    from firnline.lake import open_lake

    found = open_lake(config, engine=engine, progress=progress_for(as_json)).tiers(table)
    output_for(as_json).show(tiers_page(found, everything), found.to_json())


def _page(handed: HandedSnapshots) -> Page:
    if handed.metadata is None:
        return Page((Line(f"{handed.table}: nothing to hand over"),))
    blocks: list[Block] = [
        Line(f"{handed.table}: {counted(len(handed.snapshots), 'snapshot')} handed to {handed.tier}"),
        Line(f"copied: {tally(handed.copied)}; lay there already: {tally(handed.present)}"),
        Line(f"metadata: {handed.metadata}"),
        Hint(f"`firnline sql` reads {handed.into}; `firnline tiers TABLE` shows where each snapshot lives"),
    ]
    return Page(tuple(blocks))
