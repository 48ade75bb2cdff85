"""`firnline orphans` and `firnline dropped`: files that no table needs, and folders that no catalog knows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.searched import before_a_purge, searched_blocks
from firnline.cli.several import show_carried
from firnline.cli.terminal import completing, options
from firnline.cli.terminal.asking import ask, question_of_search
from firnline.cli.terminal.opening import lake_of, several_of
from firnline.cli.terminal.output import output_for
from firnline.errors import UsageError
from firnline.model.times import minute
from firnline.plans.answers import TableAnswer
from firnline.plans.orphans import OrphanPlan, explain_orphans
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, size

if TYPE_CHECKING:
    from firnline.ops.orphans.dropped import Dropped

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what is there; write no plan.")]
Grace = Annotated[
    str | None, typer.Option("--grace", metavar="AGE", help="How long to wait before the purge; 24h unless configured.")
]
Searched = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TABLE|PREFIX]...",
        help="Tables, or a folder with several; patterns: lake.sales.*.",
        autocompletion=completing.tables,
    ),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="T",
        help="Only files older than this: an age (7d), a date, an instant; without it, than longest-write in "
        "firnline.yaml, 3 days if nothing else is said. Never younger than 24 h.",
    ),
]
InventoryFile = Annotated[
    Path | None,
    typer.Option("--inventory", metavar="FILE", help="Parquet or CSV of path, size, modified, instead of listing."),
]
Same = Annotated[
    list[str] | None,
    typer.Option("--same", metavar="A=B", help="Two schemes and authorities that are one place; repeatable."),
]
NearMisses = Annotated[
    str,
    typer.Option(
        "--near-misses",
        metavar="stop|keep",
        help="What to do about names that nearly match.",
        autocompletion=completing.values("stop", "keep"),
    ),
]
DroppedUuid = Annotated[
    list[str] | None,
    typer.Option(
        "--dropped", metavar="UUID", help="A table, or one metadata file, that nobody has any more; repeatable."
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="LOCATION", help="A table that no catalog has, by its location; repeatable."),
]


def register(app: typer.Typer) -> None:
    app.command("orphans")(orphans)
    app.command("dropped")(dropped)


def orphans(
    tables: Searched = None,
    every: options.AllTables = False,
    at_once: options.AtOnce = AT_ONCE,
    older_than: OlderThan = None,
    dry_run: DryRun = False,
    inventory: InventoryFile = None,
    files: options.Files = None,
    grace: Grace = None,
    same: Same = None,
    near_misses: NearMisses = "stop",
    dropped_uuid: DroppedUuid = None,
    also: Also = None,
    include_outside: Annotated[
        bool, typer.Option("--include-outside", help="Search the table's folders outside its location too.")
    ] = False,
    blast_radius: options.BlastRadius = None,
    yes: options.Yes = False,
    break_lease: options.BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Find files that no snapshot of any table needs; purge them after a grace. Without --yes: only a saved plan.
    Several tables are all searched before one question is asked; one that fails stops no other.
    """
    one = options.the_one(tables, every)
    if one is None and (files is not None or inventory is not None):
        raise UsageError("--files and --inventory are of one table or folder", hint="name that one alone")
    lake = lake_of(config, engine, as_json, trust)
    asked: dict[str, Any] = {
        "older_than": older_than, "grace": grace, "inventory": inventory, "files": files, "dry_run": dry_run,
        "same": pairs(same or []), "dead": frozenset(dropped_uuid or ()), "also": tuple(also or ()),
        "keep_near_misses": one_of(near_misses, ("stop", "keep")) == "keep",
        "blast_radius": options.share(blast_radius), "break_lease": break_lease,
        "include_outside": include_outside,
    }  # fmt: skip
    if one is None:
        several = several_of(lake, None if every else tables, at_once)

        def confirm(found: Sequence[TableAnswer[OrphanPlan]]) -> bool:
            return not dry_run and consent(before_a_purge(found), found, yes, as_json)

        return show_carried(several.orphans(confirm=confirm, **asked), as_json, searched_blocks)
    _show(lake.orphans(one, consent=_consenting(yes, as_json), **asked), as_json)
    return 0


def _consenting(yes: bool, as_json: bool) -> Callable[[OrphanPlan], bool]:
    return lambda plan: consent(explain_orphans(plan), [TableAnswer(plan.table, plan)], yes, as_json)


def consent(found: Page, plans: Sequence[TableAnswer[OrphanPlan]], yes: bool, as_json: bool) -> bool:
    """Tells whether the operator wants the purge. Where nobody can be asked, the plan is saved and waits."""
    if yes:
        return True
    if as_json or not sys.stdin.isatty():
        return False
    ask(found, question_of_search(plans), as_json)
    return True


def _show(result: Any, as_json: bool) -> None:
    plan, carried = result
    facts = (
        {"run": None, "state": None, **plan.to_json()} if carried is None else {**plan.to_json(), **carried.to_json()}
    )

    from firnline.ops.orphans.pages import search_page

    output_for(as_json).show(search_page(plan, carried), facts)


def dropped(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="The folder to look under.")],
    purge: Annotated[
        str | None, typer.Option("--purge", metavar="FOLDER", help="Purge this one of them, after a grace.")
    ] = None,
    older_than: options.OlderThan = None,
    grace: Grace = None,
    yes: options.Yes = False,
    break_lease: options.BreakLease = False,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Show folders under PREFIX that look like tables but that no configured catalog knows; purge one by its name."""
    lake = lake_of(config, engine, as_json)
    if purge is None:
        found = lake.dropped(prefix)
        output_for(as_json).show(Page(tuple(_listed(found))), {"dropped": [each.to_json() for each in found]})
        return
    result = lake.purge_dropped(
        prefix, purge, older_than=older_than, grace=grace, break_lease=break_lease,
        consent=_consenting(yes, as_json),
    )  # fmt: skip
    _show(result, as_json)


def _listed(found: list[Dropped]) -> Iterator[Block]:
    yield Line(f"{counted(len(found), 'folder')} with a table's metadata that no configured catalog knows")
    if not found:
        return
    rows = tuple(
        (each.folder, each.uuid or "?", f"{each.table.files:,}", size(each.table.bytes), _age(each)) for each in found
    )
    yield Grid(rows, ("folder", "uuid", "files", "bytes", "newest"), right=frozenset({2, 3}))
    yield from (Line(f"{each.folder}: {each.problem}") for each in found if each.problem)
    if any(each.problem is None for each in found):
        yield Hint("a catalog that is not configured here may know it; --purge FOLDER removes one")


def _age(each: Dropped) -> str:
    return "?" if each.newest_ms is None else minute(each.newest_ms)


def pairs(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """Returns A=B as pairs."""
    split = [text.partition("=") for text in texts]
    wrong = [text for text, (left, _, right) in zip(texts, split, strict=True) if not left or not right]
    if wrong:
        raise UsageError(f"--same {wrong[0]} is not A=B", hint="such as --same s3://old-name=s3://new-name")
    return tuple((left, right) for left, _, right in split)


def one_of(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise UsageError(f"unknown choice {text!r}", hint=f"one of: {', '.join(known)}")
    return text
