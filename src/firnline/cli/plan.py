"""`firnline plan`: what would go, what stays and why, before anything changes."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.terminal import options
from firnline.cli.terminal.output import exit_code_of, output_for, progress_for
from firnline.errors import UsageError
from firnline.plans.answers import the_answer
from firnline.plans.explain import explain
from firnline.plans.lake_wide import TablePlan, lake_wide_json, lake_wide_page


def register(app: typer.Typer) -> None:
    app.command("plan", short_help="Show what would expire, what stays and why. Changes nothing.")(plan)


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
    orphans: options.WithOrphans = False,
    files: options.Files = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the plan, for `firnline commit RUN`.")] = False,
    everything: options.Everything = False,
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Show which snapshots of TABLE would expire, why the others stay, and which files that frees. Several tables get
    one line each, those that need a person first, and their sums. Changes nothing.
    """
    from firnline.lake import open_lake

    lake = open_lake(policy or config, engine=engine, progress=progress_for(as_json), trust=trust or ())
    keep = options.keep_flags(
        last=keep_last, within=keep_within, hourly=keep_hourly, daily=keep_daily,
        weekly=keep_weekly, monthly=keep_monthly, quarterly=keep_quarterly, yearly=keep_yearly,
        tags=options.tags_flag(keep_tag), history=keep_expired_refs,
    )  # fmt: skip
    asked: dict[str, Any] = {
        "older_than": older_than, "retain_last": retain_last, "now": now, "keep": keep, "save": save,
        "include_outside": include_outside, "blast_radius": options.share(blast_radius), "new_history": new_history,
    }  # fmt: skip
    one = options.the_one(tables, every)
    if orphans and one is not None:
        _refuse_files(files, "with --orphans a plan lists none", f"`firnline orphans {quote(one)} --files OUT` does")
        shown = the_answer(lake.several([one]).plan(orphans=True, **asked))
        output_for(as_json).show(explain(shown, everything), shown.to_json())
        return 0
    if one is not None:
        view = lake.plan(one, files=files, **asked)
        output_for(as_json).show(explain(view.plan, everything), view.to_json())
        return 0
    _refuse_files(files, "--files lists the files of one table", "name that table alone")
    several = lake.several(None if every else tables, at_once=at_once)
    return _show_all(list(several.plan(orphans=orphans, **asked)), as_json)


def _refuse_files(files: Path | None, why: str, hint: str) -> None:
    if files is not None:
        raise UsageError(why, hint=hint)


def _show_all(plans: list[TablePlan], as_json: bool) -> int:
    """Shows the plans together. Returns the exit code of the first table that could not be planned."""
    output_for(as_json).show(lake_wide_page(plans), lake_wide_json(plans))
    return exit_code_of(each.problem for each in plans)
