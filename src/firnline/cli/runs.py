"""The commands that carry runs: expire, commit, purge, undo, resume, runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.several import show_carried
from firnline.cli.terminal import options
from firnline.cli.terminal.output import exit_code_of, output_for, progress_for
from firnline.cli.terminal.process import stop_on_interrupt
from firnline.errors import UsageError
from firnline.journal.events import RunState
from firnline.journal.layout import names_run
from firnline.model.times import format_instant
from firnline.plans.answers import TableAnswer, the_answer
from firnline.plans.explain import explain
from firnline.plans.lake_wide import lake_wide_page
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, tally
from firnline.plans.plan import Plan
from firnline.plans.stages import in_words
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.ops.runs.status import RunStatus

RunArg = Annotated[str, typer.Argument(metavar="RUN", help="A run, as `firnline runs` shows it.")]
BreakLease = Annotated[
    bool, typer.Option("--break-lease", help="Go on although another process has the table, if that is certainly gone.")
]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="AGE",
        help="How long files stay after the commit, and `undo` works; 24h if nothing else is said.",
    ),
]
SoleWriter = Annotated[
    bool,
    typer.Option("--sole-writer", help="Nobody else writes to the table meanwhile: then Paimon tables need no grace."),
]
EveryTable = Annotated[
    bool, typer.Option("--all", help="Look at every table, whatever the list of unfinished runs says.")
]
_UNFINISHED = "these are not finished yet; `firnline runs --all` looks at every table and shows all of its runs"
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the table is changed.")]


def register(app: typer.Typer) -> None:
    app.command("expire", short_help="Take old snapshots out of a table; their files go after grace.")(expire)
    app.command("commit", short_help="Commit a saved plan.")(commit)
    app.command("approve", short_help="Approve a large plan that waits for a person's word.")(approve)
    app.command("purge", short_help="Delete what committed runs have written down, after grace.")(purge)
    app.command("undo")(undo)
    app.command("resume", short_help="Finish every run that was begun and may be finished now.")(resume)
    app.command("runs", short_help="List runs; `runs show RUN` shows one.")(runs)


def lake_of(config: str | None, engine: str, as_json: bool, trust: Iterable[str] | None = None) -> Lake:
    from firnline.lake import open_lake

    return open_lake(
        config, engine=engine, progress=progress_for(as_json), interrupted=stop_on_interrupt(), trust=trust or ()
    )


def expire(
    tables: options.TablesArg = None,
    every: options.AllTables = False,
    at_once: options.AtOnce = AT_ONCE,
    older_than: options.OlderThan = None,
    retain_last: options.RetainLast = None,
    now: options.Now = None,
    keep_last: options.KeepLast = None,
    keep_within: options.KeepWithin = None,
    keep_hourly: options.KeepHourly = None,
    keep_daily: options.KeepDaily = None,
    keep_weekly: options.KeepWeekly = None,
    keep_monthly: options.KeepMonthly = None,
    keep_quarterly: options.KeepQuarterly = None,
    keep_yearly: options.KeepYearly = None,
    keep_tag: options.KeepTag = None,
    keep_expired_refs: options.KeepExpiredRefs = None,
    new_history: options.NewHistory = False,
    include_outside: options.IncludeOutside = None,
    blast_radius: options.BlastRadius = None,
    orphans: options.WithOrphans = False,
    grace: Grace = None,
    clean: Annotated[
        bool, typer.Option("--clean-metadata", help="Also drop schemas and partition specs that nothing uses then.")
    ] = False,
    sole_writer: SoleWriter = False,
    yes: Yes = False,
    break_lease: BreakLease = False,
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Take old snapshots out of TABLE, after showing the plan and asking. Their files stay until grace is over: until
    then `undo` brings everything back, from then on `firnline purge` deletes them (at once with --grace 0s). Several
    tables are all planned before one question is asked; one that fails stops no other, and `resume` does the rest.

    With --orphans one run also removes what no table needs; the folders are listed before anything is planned.
    """
    one = options.the_one(tables, every)
    lake = lake_of(policy or config, engine, as_json, trust)
    keep = options.keep_flags(
        last=keep_last, within=keep_within, hourly=keep_hourly, daily=keep_daily,
        weekly=keep_weekly, monthly=keep_monthly, quarterly=keep_quarterly, yearly=keep_yearly,
        tags=options.tags_flag(keep_tag), history=keep_expired_refs,
    )  # fmt: skip
    asked: dict[str, Any] = {
        "older_than": older_than, "retain_last": retain_last, "now": now, "keep": keep,
        "include_outside": include_outside, "blast_radius": options.share(blast_radius), "grace": grace, "clean": clean,
        "new_history": new_history, "sole_writer": sole_writer, "break_lease": break_lease,
    }  # fmt: skip
    if one is not None and not orphans:
        show_expired(lake.expire(one, confirm=confirming(yes, as_json), **asked), as_json)
        return 0
    if not yes:
        refuse_mute(as_json)
    page = lake_wide_page if one is None else (lambda plans: explain(the_answer(plans)))
    confirm = (lambda plans: None) if yes else (lambda plans: ask(page(plans), as_json))
    several = lake.several(None if every else tables, at_once=at_once)
    return show_carried(several.expire(confirm=confirm, orphans=orphans, **asked), as_json)


def show_expired(result: Any, as_json: bool) -> None:
    from firnline.app.runs import PlanView

    if isinstance(result, PlanView):
        output_for(as_json).show(explain(result.plan), {"run": None, "state": None, **result.to_json()})
    else:
        show_runs([result], as_json, single=True)


def confirming(yes: bool, as_json: bool) -> Callable[[Plan], None]:
    """Returns what asks before a plan is carried out; nothing where the answer is known."""
    return lambda plan: None if yes else ask(explain(plan), as_json)


def ask(page: Page, as_json: bool) -> None:
    """Shows what would happen and asks; where nobody can answer, nothing is done."""
    refuse_mute(as_json)
    print(page.to_text(), file=sys.stderr)
    if not typer.confirm("carry this out?", err=True):
        raise typer.Abort


def refuse_mute(as_json: bool) -> None:
    """Raises UsageError where nobody can be asked."""
    if as_json or not sys.stdin.isatty():
        raise UsageError("this changes the table", hint="add --yes to say that it is meant")


def commit(
    run: RunArg,
    break_lease: BreakLease = False,
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
        list[str] | None, typer.Argument(metavar="[RUN|TABLE]...", help="Default: every due run.")
    ] = None,
    every: EveryTable = False,
    at_once: options.AtOnce = AT_ONCE,
    include_outside: options.IncludeOutside = None,
    break_lease: BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Delete what committed runs have written down, once their grace is over; each batch is checked again first."""
    lake = lake_of(config, engine, as_json, trust)
    said: dict[str, Any] = {"break_lease": break_lease, "include_outside": include_outside}
    if targets and len(targets) == 1 and names_run(targets[0]):
        show_runs([lake.purge(targets[0], **said)], as_json, single=True)
        return 0
    several = lake.several(_tables_of(targets, every), at_once=at_once)
    return _show_each(several.purge(everywhere=every, **said), as_json)


def undo(
    run: RunArg,
    include_outside: Annotated[
        bool | None,
        typer.Option(
            "--include-outside", help="Also what needs files outside the table's folders, if the run is not sealed."
        ),
    ] = None,
    break_lease: BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Bring the snapshots, refs and log of a run back. Works until its purge starts."""
    lake = lake_of(config, engine, as_json, trust)
    undone = lake.undo(run, break_lease=break_lease, include_outside=include_outside)
    show_runs([undone], as_json, single=True)


def resume(
    targets: Annotated[list[str] | None, typer.Argument(metavar="[RUN|TABLE]...", help="Default: every table.")] = None,
    every: EveryTable = False,
    at_once: options.AtOnce = AT_ONCE,
    include_outside: options.IncludeOutside = None,
    break_lease: BreakLease = False,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Finish every unfinished run that may be finished now, from its record alone."""
    lake = lake_of(config, engine, as_json, trust)
    said: dict[str, Any] = {"break_lease": break_lease, "include_outside": include_outside}
    if targets and len(targets) == 1 and names_run(targets[0]):
        show_runs([lake.advance(targets[0], **said)], as_json, single=True)
        return 0
    several = lake.several(_tables_of(targets, every), at_once=at_once)
    return _show_each(several.resume(everywhere=every, **said), as_json)


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


def _show_each(answers: Iterable[TableAnswer[list[RunStatus]]], as_json: bool, hint: str = "") -> int:
    """Shows the runs of each table, and a hint. Returns the exit code of the first that failed: trouble with one is
    said, and does not hide the others.
    """
    listed = list(answers)
    for each in listed:
        if each.problem is not None:
            output_for(as_json).fail(type(each.problem)(f"{each.table}: {each.problem.message}", each.problem.hint))
    carried = [status for each in listed for status in each.value or ()]
    show_runs(carried, as_json, hint=hint)
    return exit_code_of([*(each.problem for each in listed), *(each.refusal for each in carried)])


def runs(
    show: Annotated[str | None, typer.Argument(metavar="[show|TABLE]", help="`show RUN`, or a table.")] = None,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="With `show`: the run.")] = None,
    every: EveryTable = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """List the runs of every table, or of one; `runs show RUN` shows one. If `records` is configured, the runs that are
    listed there as unfinished are shown; with --all every run of every table.
    """
    lake = lake_of(config, "auto", as_json)
    if show == "show":
        if run is None:
            raise UsageError("runs show needs a RUN", hint="`firnline runs` lists them")
        found = lake.run(run)
        output_for(as_json).show(Page((*run_blocks(found), *_stages(found), _events(found))), found.to_json())
        return 0
    several = lake.several(_tables_of([] if show is None else [show], every))
    hint = _UNFINISHED if several.by_lists and not every else ""
    return _show_each(several.runs(everywhere=every), as_json, hint)


def _events(status: RunStatus) -> Grid:
    rows = tuple((str(each.number), format_instant(each.at_ms), each.state.value) for each in status.run.events)
    return Grid(rows, ("event", "at", "state"))


def _stages(status: RunStatus) -> Iterator[Block]:
    """Yields what is still to come, as the plan showed it."""
    yield from (Line(f"  will {in_words(stage)}") for stage in status.run.stages_left)


def show_runs(runs: Iterable[RunStatus], as_json: bool, single: bool = False, hint: str = "") -> None:
    """Says where the runs stand, then a hint. One run that was asked for by name is a JSON object of its own."""
    listed = list(runs)
    facts = listed[0].to_json() if single else {"runs": [each.to_json() for each in listed]}
    blocks = [block for each in listed for block in run_blocks(each)]
    hints = [Hint(hint)] if hint else []
    output_for(as_json).show(Page((*(blocks or [Line("no runs")]), *hints)), facts)


def run_blocks(status: RunStatus) -> Iterator[Block]:
    run = status.run
    yield Line(f"{status.id}: {status.state}" + (f", waits for {status.waits}" if status.waits else ""))
    if status.expired and status.state not in (RunState.UNDONE, RunState.CANCELLED):
        refs = f", {counted(len(status.expired_refs), 'ref')}" if status.expired_refs else ""
        yield Line(f"  expired: {counted(len(status.expired), 'snapshot')}{refs}")
    if status.outcomes:
        yield Grid(tuple((outcome, tally(each)) for outcome, each in status.outcomes.items()))
    if status.left_alone:
        yield Line(f"  left alone, since created again: {', '.join(status.left_alone)}")
    if run.commit_due_ms is not None:
        yield Hint(
            f"`firnline undo {quote(status.id)}` calls it off until then; "
            f"`firnline commit {quote(status.id)}` does not wait"
        )
    if status.state is RunState.COMMITTED and run.undo is UndoWindow.AFTER_COMMIT:
        yield Hint(f"`firnline undo {quote(status.id)}` brings everything back until the purge starts")
    if status.state is RunState.COMMITTED:
        yield Hint(f"`firnline purge {quote(status.id)}` deletes the files, once grace is over")
