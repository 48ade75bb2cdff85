"""The commands on what names or keeps snapshots: tag, hold, branch, adopt."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.expire import show_expired
from firnline.cli.terminal import completing, options
from firnline.cli.terminal.asking import ask, confirming
from firnline.cli.terminal.opening import lake_of
from firnline.cli.terminal.output import output_for
from firnline.model.times import tell_instant
from firnline.plans.pages import Grid, Hint, Line, Page, counted

if TYPE_CHECKING:
    from firnline.ops.marks.adopt import Adoption

tag_app = typer.Typer(help="Name snapshots that every engine keeps.", no_args_is_help=True)
hold_app = typer.Typer(help="Hold snapshots or whole tables: who, why, until when.", no_args_is_help=True)
branch_app = typer.Typer(help="Drop branches, with what only they hold.", no_args_is_help=True)

_DAMAGED = "nothing of the table goes while this hold cannot be read: correct its property, or remove it with"

TagName = Annotated[str, typer.Argument(metavar="NAME", help="The tag's name.", autocompletion=completing.tags)]
HoldName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The hold's name: a case, a ticket.", autocompletion=completing.holds),
]


def register(app: typer.Typer) -> None:
    app.add_typer(tag_app, name="tag")
    app.add_typer(hold_app, name="hold")
    app.add_typer(branch_app, name="branch")
    app.command("adopt")(adopt_table)


@tag_app.command("add")
def tag_add(
    table: options.TableArg,
    name: TagName,
    snapshot: Annotated[
        str | None,
        typer.Argument(metavar="[SNAPSHOT|REF]", help="Default: the current one.", autocompletion=completing.refs),
    ] = None,
    retain: Annotated[str | None, typer.Option("--retain", metavar="AGE|forever", help="30d, or forever.")] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Tag a snapshot. --retain counts from now on, however old the snapshot is. Without it, the table's own default age
    for refs counts, which does so from the snapshot's time.
    """
    tag = lake_of(config, "auto", as_json).tag(table, name, snapshot, retain=retain)
    said = f"tagged {tag.ref.snapshot} as {tag.ref.name}: {tag.kept_told}"
    output_for(as_json).show(Page((Line(said),)), tag.to_json())


@tag_app.command("remove")
def tag_remove(
    table: options.TableArg,
    name: TagName,
    blast_radius: options.BlastRadius = None,
    grace: options.Grace = None,
    sole_writer: options.SoleWriter = False,
    yes: options.Yes = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Remove a tag; its snapshot then falls under the policy. One that a Paimon tag alone holds goes with it, in a run
    that can be undone.
    """
    asked: dict[str, Any] = {"blast_radius": options.share(blast_radius), "grace": grace, "sole_writer": sole_writer}
    lake = lake_of(config, "auto", as_json)
    run = lake.untag(table, name, confirm=confirming(yes, as_json), **asked)
    if run is None:
        output_for(as_json).show(Page((Line(f"removed the tag: {name}"),)), {"removed": name})
    else:
        show_expired(run, as_json)


@tag_app.command("list")
def tag_list(table: options.TableArg, config: options.Config = None, as_json: options.Json = False) -> None:
    """List the tags of TABLE."""
    tags = lake_of(config, "auto", as_json).tags(table)
    rows = tuple((tag.ref.name, tag.ref.snapshot, tag.kept_told) for tag in tags)
    page = Page((Grid(rows) if rows else Line("no tags"),))
    output_for(as_json).show(page, tags.to_json())


@hold_app.command("add")
def hold_add(
    table: options.TableArg,
    name: HoldName,
    snapshot: Annotated[
        str | None,
        typer.Argument(metavar="[SNAPSHOT|REF]", help="Default: the whole table.", autocompletion=completing.refs),
    ] = None,
    why: Annotated[str, typer.Option("--why", help="The reason, for those who find it.")] = "",
    who: Annotated[str | None, typer.Option("--who", help="Default: you.")] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="T|AGE",
            help="A date (to its end in UTC), an instant with its zone, or an age from now: 30d.",
        ),
    ] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Hold a snapshot, or the whole table, whatever the policy says."""
    hold, protected = lake_of(config, "auto", as_json).hold(table, name, snapshot, why=why, who=who, until=until)
    ends = "" if hold.until_ms is None else f", until {tell_instant(hold.until_ms)}"
    output_for(as_json).show(Page((Line(f"held{ends}: {protected}"),)), hold.to_json())


@hold_app.command("list")
def hold_list(table: options.TableArg, config: options.Config = None, as_json: options.Json = False) -> None:
    """List the holds on TABLE."""
    holds = lake_of(config, "auto", as_json).holds(table)
    hints = (Hint(f"{_DAMAGED} `firnline hold release {quote(table)} {quote(h.name)}`") for h in holds if h.damage)
    output_for(as_json).show(Page((*holds.page().blocks, *hints)), holds.to_json())


@hold_app.command("release")
def hold_release(
    table: options.TableArg,
    name: HoldName,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Release a hold; what it kept then falls under the policy."""
    lake_of(config, "auto", as_json).release(table, name)
    output_for(as_json).show(Page((Line(f"released: {name}"),)), {"released": name})


def adopt_table(
    table: options.TableArg, yes: options.Yes = False, config: options.Config = None, as_json: options.Json = False
) -> None:
    """Write the policy's reach into the table's own retention, so that no other engine's expiry undercuts it."""

    from firnline.ops.marks.pages import adoption_page
    from firnline.ops.runs.plan import RESTART

    def confirm(wanted: tuple[Adoption, ...]) -> None:
        if not yes:
            ask(adoption_page(wanted, "would write"), f"Write {counted(len(wanted), 'setting')} into {table}?", as_json)

    written, late = lake_of(config, "auto", as_json).adopt(table, confirm=confirm)
    facts = [each.to_json() for each in written]
    hints = (Hint(f"jobs still write to {', '.join(late)} as before: {RESTART}"),) if late else ()
    page = adoption_page(written, "wrote")
    output_for(as_json).show(Page((*page.blocks, *hints)), {"table": table, "written": facts, "unaware": list(late)})


@branch_app.command("drop")
def branch_drop(
    table: options.TableArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch's name.", autocompletion=completing.refs)],
    blast_radius: options.BlastRadius = None,
    grace: options.Grace = None,
    sole_writer: options.SoleWriter = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: options.Yes = False,
    break_lease: options.BreakLease = False,
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
