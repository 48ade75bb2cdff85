"""`firnline branch drop`: a branch goes with all that only it held, in a run that can be undone."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli import options
from firnline.cli.runs import BreakLease, Grace, SoleWriter, Yes, confirming, lake_of, show_expired

branch_app = typer.Typer(help="Drop branches, with what only they hold.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(branch_app, name="branch")


@branch_app.command("drop")
def branch_drop(
    table: options.TableArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch's name.")],
    blast_radius: options.BlastRadius = None,
    grace: Grace = None,
    sole_writer: SoleWriter = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Yes = False,
    break_lease: BreakLease = False,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Drop a branch of a Paimon or Icechunk table with its snapshots and tags, and the files that nothing else needs:
    planned, committed, and purged once grace is over. Until then `undo` brings it back; of Icechunk, until the commit.
    """
    lake, radius = lake_of(config, engine, as_json), options.share(blast_radius)
    result = lake.drop_branch(
        table, name, dry_run=dry_run, blast_radius=radius, grace=grace, sole_writer=sole_writer,
        break_lease=break_lease, confirm=confirming(yes, as_json),
    )  # fmt: skip
    show_expired(result, as_json)
