"""`firnline why`: the answer to "why is this still here?"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import completing, options
from firnline.cli.terminal.opening import looking_lake
from firnline.cli.terminal.output import output_for
from firnline.model.times import minute
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted

if TYPE_CHECKING:
    from firnline.ops.looking.why import Explanation, OwnDocument, SnapshotAnswer


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
    output_for(as_json).show(Page(tuple(_blocks(answer))), answer.to_json())


def _blocks(answer: Explanation) -> Iterator[Block]:
    if answer.file is None:
        yield from _snapshot(answer.needed_by[0])
        return
    yield Line(f"{answer.file}")
    if answer.own is not None:
        yield from _metadata(answer.own)
        return
    if not answer.needed_by:
        yield Line(f"nothing of {answer.table} needs this file")
        yield Hint("it may be another table's, or nobody's")
        return
    kept = sum(each.kept for each in answer.needed_by)
    kinds = Counter(each.kind for each in answer.needed_by)
    told = ", ".join(_counted(kind, number) for kind, number in sorted(kinds.items()))
    yield Line(f"needed by {told}, of which stay: {kept:,}")
    yield Grid(tuple(map(_row, answer.needed_by)), ("snapshot", "time (UTC)", "", "refs", "why"))


def _counted(kind: str, number: int) -> str:
    from firnline.ops.looking.why import RUN, SNAPSHOT

    return f"{counted(number, SNAPSHOT)} that a run took out" if kind == RUN else counted(number, kind)


def _metadata(own: OwnDocument) -> Iterator[Block]:
    yield Line(f"{'stays' if own.kept else 'would go'}: it is {own.what}")
    if own.reasons:
        yield Grid(tuple((reason,) for reason in own.reasons))


def _row(each: SnapshotAnswer) -> tuple[str, ...]:
    from firnline.ops.looking.why import RUN, SNAPSHOT

    verdict = "stays" if each.kept else "would expire"
    named = each.snapshot if each.kind in (SNAPSHOT, RUN) else f"{each.kind} {each.snapshot}"
    return (named, _minute(each.timestamp_ms), verdict, ", ".join(each.refs), "; ".join(each.reasons))


def _minute(at_ms: int | None) -> str:
    return "" if at_ms is None else minute(at_ms)


def _snapshot(each: SnapshotAnswer) -> Iterator[Block]:
    named = f" ({', '.join(each.refs)})" if each.refs else ""
    verdict = "stays, because:" if each.kept else "would expire, because nothing keeps it:"
    yield Line(f"snapshot {each.snapshot}{named} of {_minute(each.timestamp_ms)} {verdict}")
    yield Grid(tuple((reason,) for reason in each.reasons))
