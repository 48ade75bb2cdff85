"""`firnline expire`: old snapshots go out of a table, and their files after grace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.plan import show_plans
from firnline.cli.several import show_carried
from firnline.cli.terminal import options
from firnline.cli.terminal.asking import ask, confirming, question_of_several, refuse_mute
from firnline.cli.terminal.opening import lake_of, looking_lake, several_of
from firnline.cli.terminal.output import output_for
from firnline.cli.terminal.run_pages import show_runs
from firnline.plans.answers import the_answer
from firnline.plans.explain import explain
from firnline.plans.lake_wide import TablePlan, lake_wide_page

Clean = Annotated[
    bool, typer.Option("--clean-metadata", help="Also drop schemas and partition specs that nothing uses then.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would go, as `firnline plan` does.")]


def register(app: typer.Typer) -> None:
    app.command("expire")(expire)


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
    at_most: options.AtMost = None,
    orphans: options.WithOrphans = False,
    grace: options.Grace = None,
    clean: Clean = False,
    sole_writer: options.SoleWriter = False,
    dry_run: DryRun = False,
    yes: options.Yes = False,
    break_lease: options.BreakLease = False,
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Take old snapshots out of TABLE, after showing the plan and asking. Their files stay until grace is over: until
    then `undo` brings everything back, from then on `firnline purge` deletes them (at once with --grace 0s). Several
    tables are all planned before one question is asked; one that fails stops no other, and `resume` does the rest.

    With --orphans one run also removes what no table needs; the folders are listed before anything is planned. With
    --dry-run nothing is changed: the same as `firnline plan`.
    """
    asked = options.asked(locals())
    one = options.the_one(tables, every)
    if dry_run:
        lake = looking_lake(policy or config, engine, as_json, trust)
        return show_plans(lake, None if every else tables, one, asked, orphans, at_once, as_json)
    lake = lake_of(policy or config, engine, as_json, trust)
    if one is not None and not orphans:
        show_expired(lake.expire(one, confirm=confirming(yes, as_json), break_lease=break_lease, **asked), as_json)
        return 0
    if not yes:
        refuse_mute(as_json)
    several = several_of(lake, None if every else tables, at_once)
    confirm = _confirming_all(one, yes, as_json)
    return show_carried(several.expire(confirm=confirm, orphans=orphans, break_lease=break_lease, **asked), as_json)


def _confirming_all(one: str | None, yes: bool, as_json: bool) -> Callable[[Any], None]:
    """Returns what asks once for all tables; of one alone its whole plan is shown."""

    def confirm(plans: list[TablePlan]) -> None:
        if not yes:
            page = lake_wide_page(plans) if one is None else explain(the_answer(plans))
            ask(page, question_of_several(plans), as_json)

    return confirm


def show_expired(result: Any, as_json: bool) -> None:
    """Shows the run; or the plan, where nothing expires."""
    from firnline.app.verbs.plan_views import PlanView

    if isinstance(result, PlanView):
        output_for(as_json).show(explain(result.plan), {"run": None, "state": None, **result.to_json()})
    else:
        show_runs([result], as_json, single=True)
