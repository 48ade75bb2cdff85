"""`firnline graph`: a table's snapshots before and after a run, as a graph."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.manners import is_verbose
from firnline.cli.terminal.opening import looking_lake
from firnline.cli.terminal.output import output_for
from firnline.plans.graph.text import WIDTH, graph_page

Folded = Annotated[bool, typer.Option("--list", help="Fold only commits in a row that have no name and one fate.")]


def register(app: typer.Typer) -> None:
    app.command("graph")(graph)


def graph(
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
    everything: Folded = False,
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Draw the snapshots of TABLE before and after a run: what follows what, branches, tags, holds, pins, and the tier
    that each is handed to. Commits in a row of which there is nothing to tell are folded. Changes nothing.
    """
    asked = options.asked(locals())
    found = looking_lake(policy or config, "auto", as_json, trust).graph(table, **asked)
    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    output_for(as_json).show(graph_page(found, everything or is_verbose(), width), found.to_json())
