"""The commands on runs that were planned: commit, approve, purge, undo, resume, runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.terminal import completing, options
from firnline.cli.terminal.opening import lake_of, looking_lake, stopped_after
from firnline.cli.terminal.output import exit_code_of, output_for
from firnline.cli.terminal.run_pages import (
    EVERY_RUN,
    LOOKED,
    PURGED,
    RESUMED,
    STATES,
    Acted,
    ShownRuns,
    show_ended,
    show_runs,
)
from firnline.errors import Interrupted, UsageError
from firnline.journal.layout import names_run
from firnline.ops.runs.pages.blocks import run_page
from firnline.plans.answers import TableAnswer

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.ops.runs.status import RunStatus

RunArg = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run, as `firnline runs` shows it: TABLE@STAMP, or its stamp alone.",
        autocompletion=completing.runs,
    ),
]
EveryTable = Annotated[
    bool, typer.Option("--all", help="Look at every table, whatever the list of unfinished runs says.")
]
_UNFINISHED = "these are not finished yet; `firnline runs --all` looks at every table and shows all of its runs"
OfState = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help="Only runs in this state; or open, or ended. Repeatable.",
        autocompletion=completing.values(*STATES),
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="T", help="Only runs planned since: an age (7d), a date, an instant."),
]
OfTable = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="TABLE",
        help="Only these tables: names, folders, patterns. Repeatable.",
        autocompletion=completing.tables,
    ),
]


def register(app: typer.Typer) -> None:
    app.command("commit")(commit)
    app.command("approve")(approve)
    app.command("purge")(purge)
    app.command("undo")(undo)
    app.command("resume")(resume)
    app.command("runs")(runs)


def commit(
    run: RunArg,
    break_lease: options.BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Commit a saved plan: what it names and is still expired by a fresh decision."""
    show_runs([lake_of(config, engine, as_json, trust).commit(run, break_lease=break_lease)], as_json, single=True)


def approve(
    run: RunArg,
    by: Annotated[str, typer.Option("--by", help="The person who looked at the plan.")],
    note: Annotated[str | None, typer.Option("--note", help="Why, for those who read the record.")] = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Approve a saved plan that the policy wants a person to look at first (`approve-above`); `resume` goes on then."""
    if not by.strip():
        raise UsageError("--by is empty", hint="name the person who looked at the plan")
    show_runs([lake_of(config, engine, as_json).approve(run, by=by.strip(), note=note)], as_json, single=True)


def purge(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|TABLE]...", help="Default: every due run.", autocompletion=completing.runs_and_tables
        ),
    ] = None,
    every: EveryTable = False,
    of_table: OfTable = None,
    of_state: OfState = None,
    since: Since = None,
    at_once: options.AtOnce = AT_ONCE,
    include_outside: options.IncludeOutside = None,
    break_lease: options.BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Delete what committed runs have written down, once their grace is over; each batch is checked again first. A run
    that waited to be called off (behind a REST catalog, and of Icechunk) is committed first, as `resume` does it.
    """
    targets = [*(targets or ()), *(of_table or ())]
    meant = ShownRuns(tuple(of_state or ()), options.since(since))
    lake = lake_of(config, engine, as_json, trust)
    said: dict[str, Any] = {"break_lease": break_lease, "include_outside": include_outside}
    if targets and len(targets) == 1 and names_run(targets[0]):
        if meant != EVERY_RUN:
            raise UsageError("a RUN and --state or --since do not go together", hint="they choose among several runs")
        _show_acted(lake, targets[0], lambda: lake.purge(targets[0], **said), as_json)
        return 0
    several = lake.several(_tables_of(targets, every), at_once=at_once)
    return _show_each(several.purge(everywhere=every, meant=meant.means, **said), as_json, acted=PURGED)


def undo(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TABLE",
            help="A run, as TABLE@STAMP or by its stamp; or a table's last run.",
            autocompletion=completing.runs_and_tables,
        ),
    ],
    include_outside: Annotated[
        bool | None,
        typer.Option(
            "--include-outside", help="Also what needs files outside the table's folders, if the run is not sealed."
        ),
    ] = None,
    break_lease: options.BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Bring the snapshots, refs and log of a run back, or of the last run of a table. Works until its purge starts."""
    lake = lake_of(config, engine, as_json, trust)
    undone = lake.undo(run, break_lease=break_lease, include_outside=include_outside)
    show_runs([undone], as_json, single=True)


def resume(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|TABLE]...", help="Default: every table.", autocompletion=completing.runs_and_tables
        ),
    ] = None,
    every: EveryTable = False,
    at_once: options.AtOnce = AT_ONCE,
    include_outside: options.IncludeOutside = None,
    break_lease: options.BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Finish every unfinished run that may be finished now, from its record alone: what was begun or waited to be
    called off is committed, what is past its grace is purged. A plan that was only saved waits for `commit`.
    """
    lake = lake_of(config, engine, as_json, trust)
    said: dict[str, Any] = {"break_lease": break_lease, "include_outside": include_outside}
    if targets and len(targets) == 1 and names_run(targets[0]):
        _show_acted(lake, targets[0], lambda: lake.advance(targets[0], **said), as_json)
        return 0
    several = lake.several(_tables_of(targets, every), at_once=at_once)
    return _show_each(several.resume(everywhere=every, **said), as_json, acted=RESUMED)


def _tables_of(targets: list[str] | None, every: bool) -> list[str] | None:
    """Returns the tables that are named; None if none is. Raises UsageError for a run among several, and for --all
    beside a table.
    """
    if targets and every:
        raise UsageError("--all and a TABLE do not go together", hint="--all looks at every table")
    named = [each for each in targets or () if names_run(each)]
    if named:
        raise UsageError(f"{named[0]} is a run, among several", hint="name one run alone, or tables")
    return targets or None


def _show_acted(lake: Lake, run: str, act: Callable[[], RunStatus], as_json: bool) -> None:
    """Shows one run that was to go on; one that had ended before as such."""
    had_ended, status = lake.run(run).run.is_finished, act()
    if had_ended:
        show_ended(status, as_json)
    else:
        show_runs([status], as_json, single=True, acted=PURGED)


def _show_each(
    answers: Iterable[TableAnswer[list[RunStatus]]],
    as_json: bool,
    shown: ShownRuns = EVERY_RUN,
    hint: str = "",
    acted: Acted = LOOKED,
) -> int:
    """Shows the runs of each table, and a hint. Returns the exit code of the first that failed: trouble with one is
    said, and does not hide the others.
    """
    listed = list(answers)
    stopped_after(listed)
    for each in listed:
        if each.problem is not None and not isinstance(each.problem, Interrupted):  # a stop is told once, at the end
            output_for(as_json).fail(type(each.problem)(f"{each.table}: {each.problem.message}", each.problem.flags))
    carried = [status for each in listed for status in each.value or ()]
    is_whole = all(each.problem is None for each in listed)
    none = shown.none_of(carried)
    acted = acted if none is None else replace(acted, none=none)
    show_runs(filter(shown.has, carried), as_json, hint=hint, acted=acted, is_whole=is_whole)
    return exit_code_of([*(each.problem for each in listed), *(each.refusal for each in carried)])


def _offered(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Returns what Tab offers: runs after `show`, else tables."""
    is_shown = (ctx.params.get("named") or [""])[0] == "show"
    return completing.runs(ctx, args, incomplete) if is_shown else completing.tables(ctx, args, incomplete)


def runs(
    named: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...|show RUN", help="Tables; or `show` and a run.", autocompletion=_offered),
    ] = None,
    every: EveryTable = False,
    of_table: OfTable = None,
    of_state: OfState = None,
    since: Since = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """List the runs of every table, or of those named; `runs show RUN` shows one. If `records` is configured, the
    runs that are listed there as unfinished are shown; with --all every run of every table.
    """
    lake = looking_lake(config, "auto", as_json)
    if named and named[0] == "show":
        found = lake.run(_the_run(named[1:]))
        output_for(as_json).show(run_page(found), found.to_json())
        return 0
    shown = ShownRuns(tuple(of_state or ()), options.since(since))
    several = lake.several(_tables_of([*(named or ()), *(of_table or ())], every))
    hint = _UNFINISHED if several.by_lists and not every else ""
    return _show_each(several.runs(everywhere=every), as_json, shown, hint)


def _the_run(named: list[str]) -> str:
    """Returns the run that `runs show` is asked for. Raises UsageError where it is none, or not one alone."""
    if len(named) != 1:
        raise UsageError("runs show needs one RUN", hint="`firnline runs` lists them")
    return named[0]
