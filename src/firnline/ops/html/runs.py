"""Runs in a notebook: where each stands, what it planned, and what became of its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from firnline.journal.events import RunState
from firnline.model.times import minute, second
from firnline.ops.runs.status import RunStatus, grace_end
from firnline.plans.html.charts import DOUBT, GOES, OTHER, STAYS, Share, share_bar, small_bar
from firnline.plans.html.markup import Markup, card, figures, joined, listed, paragraph, table
from firnline.plans.pages import number, size, tally
from firnline.plans.stages import in_words

_HEADINGS = ("run", "state", "waits for", "planned", "snapshots", "files", "bytes", "grace ends", "outcomes", "")
_RIGHT = frozenset({4, 5, 6})
_OF_STATE = {RunState.PLANNED: DOUBT, RunState.DONE: STAYS, RunState.COMMITTED: GOES, RunState.PURGING: GOES}
_COLOURS = {"deleted": GOES, "failed": DOUBT, "spared": STAYS}


def runs_html(runs: Sequence[RunStatus]) -> Markup:
    """Returns the runs as one table."""
    open_runs = sum(not each.run.is_finished for each in runs)
    return card(
        "runs",
        figures(runs=number(len(runs)), not_finished=number(open_runs)),
        share_bar("states of runs", [*_states(runs)]),
        table(_HEADINGS, map(_row, runs), _RIGHT) if runs else paragraph("no runs"),
    )


def run_html(status: RunStatus) -> Markup:
    """Returns one run: its row, what is still to come, and all that happened to it."""
    return card(
        f"{status.id}: {status.state}",
        table(_HEADINGS, [_row(status)], _RIGHT),
        _said(status),
        listed(f"will {in_words(each)}" for each in status.run.stages_left),
        table(
            ("event", "at (UTC)", "state"),
            ((str(each.number), second(each.at_ms), each.state.value) for each in status.run.events),
        ),
    )


def _states(runs: Sequence[RunStatus]) -> Iterator[Share]:
    for state, count in Counter(each.state for each in runs).items():
        yield Share(state.value, count, number(count), _OF_STATE.get(state, OTHER))


def _said(status: RunStatus) -> Markup:
    gone = status.state not in (RunState.UNDONE, RunState.CANCELLED)
    said = []
    if status.expired and gone:
        refs = f", refs: {', '.join(status.expired_refs)}" if status.expired_refs else ""
        said.append(f"expired: {number(len(status.expired))}{refs}")
    if status.left_alone:
        said.append(f"left alone, since created again: {', '.join(status.left_alone)}")
    if status.refusal is not None:
        said.append(f"refused: {status.refusal.message}")
    return joined(map(paragraph, said))


def _row(status: RunStatus) -> tuple[str, ...]:
    shares = [Share(name, each.files, tally(each), _COLOURS.get(name, OTHER)) for name, each in status.outcomes.items()]
    bar = small_bar(f"files of {status.id}", shares)
    return (status.id, status.state.value, status.waits_told, *run_figures(status), bar)


def run_figures(status: RunStatus) -> tuple[str, ...]:
    """Returns when a run was planned, its snapshots, files and bytes, when its grace ends, and what became of files."""
    run, planned = status.run, status.run.plan["victims"]
    return (
        minute(run.events[0].at_ms),
        number(len(run.plan["expire"])),
        number(planned["files"]),
        size(planned["bytes"]),
        grace_end(run),
        ", ".join(f"{name}: {tally(each)}" for name, each in status.outcomes.items()),
    )
