"""`firnline why`: the answer to "why is this still here?"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import completing, options
from firnline.cli.terminal.opening import looking_lake
from firnline.cli.terminal.output import output_for

if TYPE_CHECKING:
    pass


def register(app: typer.Typer) -> None:
    app.command("why")(why)


def why(
    table: options.TableArg,
    what: Annotated[
        str,
        typer.Argument(
            metavar="SNAPSHOT|REF|FILE", help="A snapshot id, a ref, or a file's path.", autocompletion=completing.refs
        ),
    ],
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
    trust: options.TrustSnapshot = None,
    policy: options.Policy = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Say which rule, ref, hold or pin keeps a snapshot, or which snapshots need a file."""
    asked = options.asked(locals())
    lake = looking_lake(policy or config, "auto", as_json, trust)
    answer = lake.why(table, what, **asked)

    from firnline.ops.looking.pages import why_page

    output_for(as_json).show(why_page(answer), answer.to_json())
