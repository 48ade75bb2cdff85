"""`firnline plan`: what would go, what stays and why, before anything changes."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.terminal import options
from firnline.cli.terminal.manners import is_verbose
from firnline.cli.terminal.opening import looking_lake, several_of
from firnline.cli.terminal.output import exit_code_of, output_for
from firnline.errors import UsageError
from firnline.plans.answers import the_answer

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.plans.lake_wide import TablePlan


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)


def plan(
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
    files: options.Files = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the plan, for `firnline commit RUN`.")] = False,
    everything: options.EveryLine = False,
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Show which snapshots of TABLE would expire, why the others stay, and which files that frees. Several tables get
    one line each, those that need a person first, and their sums. Changes nothing.
    """
    asked = options.asked(locals())
    one = options.the_one(tables, every)
    if files is not None and (one is None or orphans):
        refuse_files(one)
    lake = looking_lake(policy or config, engine, as_json, trust)
    named = None if every else tables
    return show_plans(lake, named, one, {**asked, "save": save}, orphans, at_once, as_json, files, everything)


def show_plans(
    lake: Lake,
    tables: list[str] | None,
    one: str | None,
    asked: dict[str, Any],
    orphans: bool,
    at_once: int,
    as_json: bool,
    files: Path | None = None,
    everything: bool = False,
) -> int:
    """Shows what runs would do: of one table the whole plan, of several a line each. Returns the exit code of the first
    that could not be planned.
    """
    from firnline.plans.explain import explain

    everything = everything or is_verbose()
    if one is not None and not orphans:
        view = lake.plan(one, files=files, **asked)
        output_for(as_json).show(explain(view.plan, everything), view.to_json())
        return 0
    several = several_of(lake, tables, at_once).plan(orphans=orphans, **asked)
    if one is not None:
        shown = the_answer(several)
        output_for(as_json).show(explain(shown, everything), shown.to_json())
        return 0
    return _show_all(list(several), as_json, everything)


def refuse_files(one: str | None) -> None:
    """Raises UsageError: the files of such a plan are not listed."""
    if one is None:
        raise UsageError("--files lists the files of one table", hint="name that table alone")
    listing = f"`firnline orphans {quote(one)} --files OUT` does"
    raise UsageError("with --orphans a plan lists none", hint=listing)


def _show_all(plans: list[TablePlan], as_json: bool, everything: bool) -> int:
    """Shows the plans together. Returns the exit code of the first table that could not be planned."""
    from firnline.plans.lake_wide import lake_wide_json, lake_wide_page

    output_for(as_json).show(lake_wide_page(plans, everything), lake_wide_json(plans))
    return exit_code_of(each.problem for each in plans)
