"""`firnline archive` and `firnline tiers`: handing history to colder storage, and where it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import completing, options
from firnline.cli.terminal.opening import looking_lake
from firnline.cli.terminal.output import output_for
from firnline.errors import UsageError
from firnline.plans.pages import Block, Hint, Line, Page, counted, tally

if TYPE_CHECKING:
    from firnline.app.tiers import HandedSnapshots
    from firnline.ops.tiers.restoring import Restored
    from firnline.ops.tiers.waking import Awaited


def register(app: typer.Typer) -> None:
    app.command("archive")(archive)
    app.command("restore")(restore)
    app.command("tiers")(tiers)


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
    lake = looking_lake(config, engine, as_json)
    handed = lake.archive(table, older_than=older_than, retain_last=retain_last, now=now)
    output_for(as_json).show(_page(handed), handed.to_json())


SnapshotArg = Annotated[str, typer.Argument(metavar="SNAPSHOT", help="Its id, or a tag of the tier's table.")]
To = Annotated[
    str, typer.Option("--to", metavar="live|TIER|PATH", help="The live table, a tier's, or a place of its own.")
]
AsBranch = Annotated[str | None, typer.Option("--as-branch", metavar="NAME", help="Bring it back as a branch.")]
AsTag = Annotated[
    str | None, typer.Option("--as-tag", metavar="NAME", help="Bring it back under this tag; else restored-SNAPSHOT.")
]

Case = Annotated[str | None, typer.Option("--case", metavar="CASE", help="What a deep restore is for: required there.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who asks for a deep restore: required there.")]
Speed = Annotated[
    str,
    typer.Option(
        "--speed",
        metavar="SPEED",
        help="Of a deep restore: bulk (the cheapest), standard or expedited.",
        autocompletion=completing.values("bulk", "standard", "expedited"),
    ),
]
Days = Annotated[int, typer.Option("--days", metavar="N", help="How long bundles stay readable that are restored.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Ask for a deep restore, and do not wait for it.")]


def restore(
    table: options.TableArg,
    snapshot: SnapshotArg,
    to: To = "live",
    as_branch: AsBranch = None,
    as_tag: AsTag = None,
    case: Case = None,
    by: By = None,
    speed: Speed = "bulk",
    days: Days = 7,
    no_wait: NoWait = False,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Bring SNAPSHOT of TABLE back from the tier that has it: into the live table, under a tag or a branch, or to a
    place of its own, as a table that engines open by its metadata. The tier keeps it.

    What sleeps in an archive class is asked for first, for a case and by a person, and waited for: the same command,
    given again, goes on.
    """
    from firnline.ops.tiers.waking import Awaited, Inquiry

    if as_branch and as_tag:
        raise UsageError("--as-branch and --as-tag do not go together", hint="a snapshot comes back under one name")
    lake = looking_lake(config, engine, as_json)
    formal = None if case is None and by is None else Inquiry(case or "", by or "", speed, days, not no_wait)
    found = lake.restore(table, snapshot, to, branch=as_branch, tag=as_tag, inquiry=formal)
    page = _awaited_page(found) if isinstance(found, Awaited) else _restored_page(found)
    output_for(as_json).show(page, found.to_json())


def _awaited_page(found: Awaited) -> Page:
    awake = found.awake
    asked = f"{found.snapshot} of {found.source} was asked for, {found.inquiry.speed}, for {found.inquiry.days} days"
    return Page(
        (
            Line(asked),
            Line(f"readable: {awake.readable:,} of {counted(awake.bundles.files, 'bundle')}, {tally(awake.bundles)}"),
            Hint("the same command goes on when it is there; a deep archive takes 12 to 48 hours"),
        )
    )


def _restored_page(found: Restored) -> Page:
    where = f"as the {found.ref.kind} {found.ref.name}" if found.ref else f"with the metadata {found.metadata}"
    copied = f"copied: {tally(found.copied)}; lay there already: {tally(found.present)}"
    return Page((Line(f"{found.snapshot} of {found.source} is back, {where}"), Line(copied)))


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
    from firnline.ops.tiers.whereabouts import tiers_page

    found = looking_lake(config, engine, as_json).tiers(table)
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
