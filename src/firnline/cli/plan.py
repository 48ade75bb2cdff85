"""`firnline plan`: what would go, what stays and why, before anything changes."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli import options
from firnline.cli.output import output_for, progress_for
from firnline.plans.explain import explain


def register(app: typer.Typer) -> None:
    app.command("plan", short_help="Show what would expire, what stays and why. Changes nothing.")(plan)


def plan(
    table: options.TableArg,
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
    files: options.Files = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the plan, for `firnline commit RUN`.")] = False,
    everything: options.Everything = False,
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Show which snapshots of TABLE would expire, why the others stay, and which files that frees. Changes nothing."""
    from firnline.lake import open_lake

    lake = open_lake(policy or config, engine=engine, progress=progress_for(as_json), trust=trust or ())
    keep = options.keep_flags(
        last=keep_last, within=keep_within, hourly=keep_hourly, daily=keep_daily,
        weekly=keep_weekly, monthly=keep_monthly, quarterly=keep_quarterly, yearly=keep_yearly,
        tags=options.tags_flag(keep_tag), history=keep_expired_refs,
    )  # fmt: skip
    view = lake.plan(
        table, older_than=older_than, retain_last=retain_last, now=now, keep=keep,
        include_outside=include_outside, blast_radius=options.share(blast_radius), save=save, files=files,
        new_history=new_history,
    )  # fmt: skip
    output_for(as_json).show(explain(view.plan, everything), view.to_json())
