"""The options that several commands share, each defined once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from firnline.cli.terminal import completing
from firnline.cli.terminal.manners import command_path
from firnline.errors import PolicyError, UsageError
from firnline.model.names import is_pattern
from firnline.policy.values import parse_setting

TableArg = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CATALOG.NAMESPACE.NAME, or its folder: a path or URI.",
        autocompletion=completing.tables,
    ),
]
TablesArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TABLE]...",
        help="Names, folders, or patterns: lake.sales.*; several show one line each.",
        autocompletion=completing.tables,
    ),
]
AllTables = Annotated[bool, typer.Option("--all", help="Every table of every configured catalog.")]


def _many(said: str | int) -> int:
    """Returns how many are meant. Raises UsageError for less than one, and for what is no number."""
    text = str(said)
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise UsageError(f"--at-once takes a number of 1 or more: {text!r}", hint="--at-once 4")
    return int(text)


AtOnce = Annotated[
    int, typer.Option("--at-once", metavar="N", parser=_many, help="Of several tables, so many side by side.")
]
Config = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="firnline.yaml to use instead of the one found.")
]


def _there(file: str | None) -> str | None:
    """Returns the policy file that was named. Raises PolicyError where it is not there, by the name of its own flag."""
    if file and not os.path.exists(file):  # no trouble with the path itself is raised, unlike by Path
        raise PolicyError(f"there is no {file}", hint="name a file with --policy")
    return file


Policy = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="FILE", callback=_there, help="The policy file of this run, in place of --config."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, errors as JSON on stderr.")]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Who opens the metadata: local (threads), spark, or auto, by the table's size.",
        envvar="FIRNLINE_ENGINE",
        autocompletion=completing.values("auto", "local", "spark"),
    ),
]
TrustSnapshot = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-snapshot",
        metavar="ID",
        help="A snapshot whose manifest list is whole although its summary tells of more, or whose own time counts "
        "although another clock contradicts it (Icechunk; '*' for all); repeatable.",
    ),
]
WithOrphans = Annotated[
    bool,
    typer.Option(
        "--orphans",
        help="Also remove what no table needs: the table's folders are listed first, and one plan has both.",
    ),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="T",
        help="Expire what is older, in place of the table's own maximum age: an age (7d), a date, ISO 8601 with zone, "
        "or epoch ms.",
    ),
]
RetainLast = Annotated[
    int | None,
    typer.Option(
        "--retain-last", metavar="N", help="Keep so many of each branch, in place of the table's own minimum."
    ),
]
Now = Annotated[
    str | None, typer.Option("--now", metavar="T", help="Decide as if it were then: ISO 8601 with zone, or epoch ms.")
]
IncludeOutside = Annotated[
    bool | None,
    typer.Option("--include-outside/--no-include-outside", help="Let files outside the table's own folders go too."),
]
Everything = Annotated[bool, typer.Option("--list", help="Show every snapshot, not only the newest.")]
EveryLine = Annotated[bool, typer.Option("--list", help="Show every snapshot, not only the newest, and every table.")]
Files = Annotated[
    Path | None, typer.Option("--files", metavar="OUT", help="Write the files that would go: OUT.parquet or OUT.csv.")
]

KeepLast = Annotated[str | None, typer.Option("--keep-last", metavar="N", help="Keep the newest N of each branch.")]
KeepWithin = Annotated[
    str | None, typer.Option("--keep-within", metavar="AGE", help="Keep all that are not older than AGE: 30d.")
]
KeepHourly = Annotated[
    str | None,
    typer.Option("--keep-hourly", metavar="N|AGE", help="Keep the newest of each hour: of N hours, or for AGE."),
]
KeepDaily = Annotated[
    str | None,
    typer.Option("--keep-daily", metavar="N|AGE", help="Keep the newest of each day: of N days, or for AGE."),
]
KeepWeekly = Annotated[
    str | None,
    typer.Option("--keep-weekly", metavar="N|AGE", help="Keep the newest of each week: of N weeks, or for AGE."),
]
KeepMonthly = Annotated[
    str | None,
    typer.Option("--keep-monthly", metavar="N|AGE", help="Keep the newest of each month: of N months, or for AGE."),
]
KeepQuarterly = Annotated[
    str | None,
    typer.Option(
        "--keep-quarterly", metavar="N|AGE", help="Keep the newest of each quarter: of N quarters, or for AGE."
    ),
]
KeepYearly = Annotated[
    str | None,
    typer.Option("--keep-yearly", metavar="N|AGE", help="Keep the newest of each year: of N years, or for AGE."),
]
KeepTag = Annotated[
    list[str] | None,
    typer.Option("--keep-tag", metavar="PATTERN", help="Keep what tags of such names mark: audit-*; repeatable."),
]
KeepExpiredRefs = Annotated[
    str | None,
    typer.Option(
        "--keep-expired-refs",
        "--history",
        metavar="AGE|T",
        help="Remember which snapshots expired until they are this old: 180d; or those committed after an instant.",
    ),
]
NewHistory = Annotated[
    bool, typer.Option("--new-history", help="Begin another history where the present one cannot be read.")
]
BlastRadius = Annotated[
    str | None,
    typer.Option(
        "--blast-radius",
        metavar="SHARE",
        help="Refuse to remove a larger share of the table's files or bytes than this; 90% if nothing else is said.",
    ),
]


AtMost = Annotated[
    str | None,
    typer.Option(
        "--at-most",
        metavar="SHARE",
        help="Let no more than this share of the table's files or bytes go, the oldest snapshots first: 50%. The rest "
        "stays for a later run.",
    ),
]
BreakLease = Annotated[
    bool, typer.Option("--break-lease", help="Go on although another process has the table, if that is certainly gone.")
]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="AGE",
        help="How long it is from the command to the delete, and files stay; 24h if nothing else is said. `undo` works "
        "in all of it, where a catalog takes no commit back in its first half.",
    ),
]
SoleWriter = Annotated[
    bool,
    typer.Option("--sole-writer", help="Nobody else writes to the table meanwhile: then Paimon tables need no grace."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the table is changed.")]

_KEEP = ("last", "within", "hourly", "daily", "weekly", "monthly", "quarterly", "yearly")
_ASKED = (
    "older_than", "retain_last", "now", "include_outside", "blast_radius", "new_history", "grace", "clean",
    "sole_writer", "at_most",
)  # fmt: skip
_SHARES = {"blast_radius": "--blast-radius", "at_most": "--at-most"}


def asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a run out of a command's parameters, by the names that these have in every command."""
    said = {name: given[name] for name in _ASKED if name in given}
    said |= {name: share(said[name], flag) for name, flag in _SHARES.items() if name in said}
    return {**said, "keep": _keep_flags(given)}


def _keep_flags(given: Mapping[str, Any]) -> dict[str, str]:
    """Returns the rules that were given as flags."""
    rules = {name: given.get(f"keep_{name}") for name in _KEEP}
    tags, history = given.get("keep_tag"), given.get("keep_expired_refs")
    rules |= {"tags": ",".join(tags) if tags else None, "history": history}
    from firnline.policy.inherit import section_of_flags

    given_rules = {name: value for name, value in rules.items() if value is not None}
    section_of_flags(given_rules)  # a slip is told by its flag: further in, rules are named as in Python
    return given_rules


def since(text: str | None) -> int | None:
    """Returns the instant from which on something is shown: a date, an instant, or an age such as 7d, back from now."""
    from firnline.app.moments import cutoff_ms

    return cutoff_ms(text)


def share(text: str | None, flag: str = "--blast-radius") -> float | None:
    """Returns a share of one for texts such as 90%; read as in a policy file."""
    try:
        return None if text is None else float(parse_setting("blast-radius", text, flag))
    except PolicyError as problem:
        raise PolicyError(problem.message, hint=f"{flag} takes a share such as 50%") from None


def the_one(tables: list[str] | None, every: bool) -> str | None:
    """Returns the table if one is named, and not by a pattern; None if several are meant. Raises UsageError unless any
    is.
    """
    if bool(tables) == every:
        said = "--all and a TABLE do not go together" if every else "no TABLE is named"
        raise UsageError(
            said, hint=f"name some, such as lake.sales.*, or say --all; `{command_path()} --help` shows more"
        )
    return tables[0] if tables and len(tables) == 1 and not is_pattern(tables[0]) else None
