"""Why something is still here, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.model.times import minute
from firnline.ops.looking.why import RUN, SNAPSHOT, Explanation, SnapshotAnswer
from firnline.plans.html.charts import GOES, STAYS, TimedMark, time_columns
from firnline.plans.html.markup import Markup, card, figures, joined, listed, paragraph, table
from firnline.plans.pages import number


def why_html(answer: Explanation) -> Markup:
    """Returns the answer: the verdict first, then every reason."""
    about = f"snapshot {answer.needed_by[0].snapshot}" if answer.file is None else answer.file
    return card(f"{about} of {answer.table}", _verdict(answer))


def _verdict(answer: Explanation) -> Markup:
    if answer.own is not None:
        said = "stays" if answer.own.kept else "would go"
        return joined([paragraph(f"{said}: it is {answer.own.what}"), listed(answer.own.reasons)])
    if answer.file is None:
        return _snapshot(answer.needed_by[0])
    if not answer.needed_by:
        return paragraph(f"nothing of {answer.table} needs this file; it may be another table's, or nobody's")
    return _needers(answer.needed_by)


def _snapshot(each: SnapshotAnswer) -> Markup:
    named = f" ({', '.join(each.refs)})" if each.refs else ""
    verdict = "stays, because:" if each.kept else "would expire, because nothing keeps it:"
    return joined([paragraph(f"of {_minute(each)}{named}: {verdict}"), listed(each.reasons)])


def _needers(needed_by: Sequence[SnapshotAnswer]) -> Markup:
    kept = sum(each.kept for each in needed_by)
    marks = [TimedMark(each.timestamp_ms, 0 if each.kept else 1) for each in needed_by if each.timestamp_ms is not None]
    return joined(
        [
            figures(needed_by=number(len(needed_by)), of_which_stay=number(kept)),
            time_columns("snapshots that need it", (("stays", STAYS), ("would expire", GOES)), marks),
            table(("snapshot", "time (UTC)", "", "refs", "why"), map(_row, needed_by)),
        ]
    )


def _row(each: SnapshotAnswer) -> tuple[str, ...]:
    named = each.snapshot if each.kind in (SNAPSHOT, RUN) else f"{each.kind} {each.snapshot}"
    verdict = "stays" if each.kept else "would expire"
    return (named, _minute(each), verdict, ", ".join(each.refs), "; ".join(each.reasons))


def _minute(each: SnapshotAnswer) -> str:
    return "" if each.timestamp_ms is None else minute(each.timestamp_ms)
