"""Random histories of tables for Hypothesis: scripts that it can shrink, played on a store of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from firnline.model.snapshots import MAIN
from firnline.ports.stores import Put
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import SmallTable

BRANCHES = (MAIN, "experiment", "audit")


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One thing that happens to a table; `pick` chooses among whatever there is by then."""

    verb: str
    pick: int = 0
    branch: str = MAIN


@dataclass(frozen=True, slots=True)
class Script:
    """A table's whole history, and which of its snapshots are to expire."""

    layout: AvroLayout
    steps: tuple[ScriptStep, ...]
    doomed: frozenset[int]

    def play(self, store: Put, location: str) -> tuple[SmallTable, set[int]]:
        """Returns the table and the snapshots to expire: any of them, also heads, as no policy would dare."""
        table = SmallTable(store, location, self.layout)
        for step in self.steps:
            VERBS[step.verb](table, step)
        return table, {each for place, each in enumerate(table.changes) if place in self.doomed}


def scripts(most_steps: int = 14) -> st.SearchStrategy[Script]:
    """Returns histories of every format version, codec and block size."""
    return st.integers(1, 3).flatmap(lambda version: _scripts(version, most_steps))


def _scripts(version: int, most_steps: int) -> st.SearchStrategy[Script]:
    codecs = st.sampled_from(["deflate", "null", "zstandard", "snappy"])
    steps = st.lists(_steps(version), min_size=1, max_size=most_steps).map(tuple)
    doomed = st.frozensets(st.integers(0, most_steps), max_size=most_steps)
    return st.builds(
        Script, st.builds(AvroLayout, st.just(version), codecs, st.sampled_from([16_000, 1])), steps, doomed
    )


def _steps(version: int) -> st.SearchStrategy[ScriptStep]:
    verbs = [verb for verb in VERBS if version in ONLY_IN.get(verb, (1, 2, 3))]
    return st.builds(ScriptStep, st.sampled_from(verbs), st.integers(0, 9), st.sampled_from(BRANCHES))


def _on(table: SmallTable, step: ScriptStep) -> str:
    """Returns the step's branch where it exists by now, else main."""
    return step.branch if step.branch in table.heads else MAIN


def _some(paths: Sequence[str], step: ScriptStep) -> list[str]:
    """Returns up to three neighbours, chosen by the step; none where there are none."""
    start = step.pick % len(paths) if paths else 0
    return list(paths[start : start + 1 + step.pick % 3])


def _any(table: SmallTable, step: ScriptStep) -> int:
    return list(table.changes)[step.pick % len(table.changes)]


def _append(table: SmallTable, step: ScriptStep) -> None:
    table.append(1 + step.pick % 3, on=_on(table, step))


def _append_inline(table: SmallTable, step: ScriptStep) -> None:
    table.append(1 + step.pick % 2, on=_on(table, step), inline=True)


def _append_outside(table: SmallTable, step: ScriptStep) -> None:
    table.append(on=_on(table, step), outside=True)


def _stage(table: SmallTable, step: ScriptStep) -> None:
    table.append(1 + step.pick % 2, on=None)


def _overwrite(table: SmallTable, step: ScriptStep) -> None:
    on = _on(table, step)
    table.overwrite(_some(table.live(on), step), step.pick % 3, on=on)


def _compact(table: SmallTable, step: ScriptStep) -> None:
    on = _on(table, step)
    table.overwrite(table.live(on), on=on, operation="replace")


def _delete_rows(table: SmallTable, step: ScriptStep) -> None:
    on = _on(table, step)
    if targets := _some(table.live(on), step):
        table.delete_rows(targets, equality=step.pick == 9, on=on)


def _rewrite_manifests(table: SmallTable, step: ScriptStep) -> None:
    table.rewrite_manifests(on=_on(table, step))


def _bring_back(table: SmallTable, step: ScriptStep) -> None:
    on = _on(table, step)
    if paths := table.gone(on):
        table.bring_back(paths[step.pick % len(paths)], on=on)


def _branch(table: SmallTable, step: ScriptStep) -> None:
    if table.changes and step.branch != MAIN:
        table.branch(step.branch, _any(table, step))


def _tag(table: SmallTable, step: ScriptStep) -> None:
    if table.changes:
        table.tag(f"tag-{step.pick}", _any(table, step))


def _roll_back(table: SmallTable, step: ScriptStep) -> None:
    if table.head() is not None:
        table.rollback(_any(table, step))


def _statistics(table: SmallTable, step: ScriptStep) -> None:
    if table.changes:
        table.statistics(_any(table, step), by_partition=step.pick % 2 == 0)


def _share_statistics(table: SmallTable, step: ScriptStep) -> None:
    named = [each.path for each in table.named if each.kind.value == "statistics"]
    if named:
        table.statistics(_any(table, step), named[step.pick % len(named)])


VERBS: dict[str, Callable[[SmallTable, ScriptStep], None]] = {
    "append": _append,
    "append inline": _append_inline,
    "append outside": _append_outside,
    "stage": _stage,
    "overwrite": _overwrite,
    "compact": _compact,
    "delete rows": _delete_rows,
    "rewrite manifests": _rewrite_manifests,
    "bring back": _bring_back,
    "branch": _branch,
    "tag": _tag,
    "roll back": _roll_back,
    "statistics": _statistics,
    "share statistics": _share_statistics,
}
ONLY_IN = {"append inline": (1,), "delete rows": (2, 3)}
