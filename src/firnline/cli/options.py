"""The options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firnline.policy.values import parse_setting

TableArg = Annotated[str, typer.Argument(metavar="TABLE", help="CATALOG.NAMESPACE.NAME, or a location.")]
Config = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="firnline.yaml to use instead of the one found.")
]
Policy = Annotated[
    str | None, typer.Option("--policy", metavar="FILE", help="The policy file of this run, in place of --config.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, errors as JSON on stderr.")]
Engine = Annotated[str, typer.Option("--engine", help="auto, local or spark.", envvar="FIRNLINE_ENGINE")]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="T", help="Replaces the table's own maximum age: ISO 8601 with zone, or ms."),
]
RetainLast = Annotated[
    int | None, typer.Option("--retain-last", metavar="N", help="Replaces the table's own minimum of snapshots.")
]
Now = Annotated[str | None, typer.Option("--now", metavar="T", help="Decide as of this instant.")]
IncludeOutside = Annotated[
    bool | None,
    typer.Option("--include-outside/--no-include-outside", help="Let victims outside the table's folders go too."),
]
Everything = Annotated[bool, typer.Option("--list", help="Show every snapshot, not only the newest.")]
Files = Annotated[
    Path | None, typer.Option("--files", metavar="OUT", help="Write the files that would go: OUT.parquet or OUT.csv.")
]

KeepLast = Annotated[str | None, typer.Option("--keep-last", metavar="N", help="Keep the newest N of each branch.")]
KeepWithin = Annotated[str | None, typer.Option("--keep-within", metavar="AGE", help="Keep all younger than AGE: 30d.")]
KeepHourly = Annotated[str | None, typer.Option("--keep-hourly", metavar="N|AGE", help="Keep one an hour.")]
KeepDaily = Annotated[str | None, typer.Option("--keep-daily", metavar="N|AGE", help="Keep one a day.")]
KeepWeekly = Annotated[str | None, typer.Option("--keep-weekly", metavar="N|AGE", help="Keep one a week.")]
KeepMonthly = Annotated[str | None, typer.Option("--keep-monthly", metavar="N|AGE", help="Keep one a month.")]
KeepQuarterly = Annotated[str | None, typer.Option("--keep-quarterly", metavar="N|AGE", help="Keep one a quarter.")]
KeepYearly = Annotated[str | None, typer.Option("--keep-yearly", metavar="N|AGE", help="Keep one a year.")]
KeepTag = Annotated[
    list[str] | None, typer.Option("--keep-tag", metavar="PATTERN", help="Keep what such tags mark; repeatable.")
]
KeepExpiredRefs = Annotated[
    str | None,
    typer.Option("--keep-expired-refs", metavar="AGE", help="Remember what expires until it is this old: 180d."),
]
NewHistory = Annotated[
    bool, typer.Option("--new-history", help="Begin another history where the present one cannot be read.")
]
BlastRadius = Annotated[
    str | None,
    typer.Option("--blast-radius", metavar="SHARE", help="The largest share that a run may remove: 90%."),
]


def share(text: str | None) -> float | None:
    """Returns a share of one for texts such as 90%; read as in a policy file."""
    return None if text is None else float(parse_setting("blast-radius", text, "--blast-radius"))


def keep_flags(**given: str | None) -> dict[str, str]:
    """Returns the rules that were given as flags."""
    return {name: value for name, value in given.items() if value is not None}


def tags_flag(patterns: list[str] | None) -> str | None:
    return ",".join(patterns) if patterns else None
