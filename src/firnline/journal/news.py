"""What a run's own record tells of it: the figures of each stage, and what persons said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firnline.journal.events import RunState
from firnline.journal.runs import Run
from firnline.ports.observing.news import News

_SAID = ("by", "note", "why", "case")


def news_of_move(run: Run, state: RunState, at_ms: int, detail: Mapping[str, Any]) -> News:
    """Returns the news that a run enters a state."""
    return _news(run, state, at_ms, {**planned_figures(run.plan), **_figures(state, detail)}, detail)


def news_of_failure(run: Run, error: str, at_ms: int) -> News:
    """Returns the news that a run stays where it is, for an error of that kind."""
    return _news(run, run.state, at_ms, planned_figures(run.plan), {}, error)


def news_of_plan(run: str, plan: Mapping[str, Any], at_ms: int) -> News:
    """Returns the news that a run was planned."""
    table, kind = str(plan["table"]), str(plan["kind"])
    return News(run, table, kind, None, RunState.PLANNED, at_ms, planned_figures(plan), _words(plan, {}))


def _news(
    run: Run,
    state: RunState,
    at_ms: int,
    figures: Mapping[str, int],
    detail: Mapping[str, Any],
    error: str | None = None,
) -> News:
    last, digest = run.events[-1], run.events[0].detail.get("plan")
    took_ms, table = max(0, at_ms - last.at_ms), str(run.plan["table"])
    words = _words(run.plan, detail)
    return News(str(run.id), table, run.kind, run.state, state, at_ms, figures, words, error, digest, took_ms)


def planned_figures(plan: Mapping[str, Any]) -> dict[str, int]:
    """Returns what a plan would take: snapshots, refs, files and bytes."""
    victims = plan.get("victims") or {}
    return {
        "planned_snapshots": len(plan.get("expire") or ()),
        "planned_refs": len(plan.get("expire_refs") or ()),
        "planned_files": int(victims.get("files", 0)),
        "planned_bytes": int(victims.get("bytes", 0)),
    }


def _figures(state: RunState, detail: Mapping[str, Any]) -> dict[str, int]:
    """Returns what an event says in numbers."""
    match state:
        case RunState.COMMITTING | RunState.COMMITTED:
            removal = detail.get("removal") or {}
            return {"snapshots": len(removal.get("snapshots") or ()), "refs": len(removal.get("refs") or ())}
        case RunState.ARCHIVED:
            tallies = {name: detail.get(name) or {} for name in ("copied", "present")}
            counts = {f"{name}_{unit}": count for name, tally in tallies.items() for unit, count in tally.items()}
            return {"snapshots": len(detail.get("snapshots") or ()), **counts}
        case RunState.DONE:
            return {f"{outcome}_{unit}": count for outcome, tally in (detail.get("outcomes") or {}).items()
                    for unit, count in tally.items()}  # fmt: skip
        case _:
            return {}


def _words(plan: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, str]:
    erased = plan.get("erasure") or {}
    return {name: str(said) for name in _SAID if (said := detail.get(name) or erased.get(name))}
