"""Guards of firnline's that worlds with surroundings must miss: each taken out for a moment, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from firnline.formats.paimon.reading.snapshot import Lasting
from firnline.journal.runs import Run, list_runs
from firnline.ops.table.context import TableContext
from firnline.ports.formats import State


def _nothing(*_: object, **__: object) -> None: ...


def _none(*_: object, **__: object) -> Iterator[Any]:
    return iter(())


def _as_it_is(location: str) -> str:
    return location


def _empty(*_: object, **__: object) -> list[Any]:
    return []


def _options_as_they_are(_: object, options: object, before: object) -> tuple[object, object]:
    return options, before


@dataclass(frozen=True)
class Guard:
    """Where it stands, with what stands there instead, and the steps that meet it, or the script in which it is met."""

    targets: Mapping[str, Any]
    met: tuple[str, ...] = ()
    script: str = ""

    def take_out(self, monkey: pytest.MonkeyPatch) -> None:
        for target, instead in self.targets.items():
            monkey.setattr(target, instead)


def _local_end(lasting: Lasting, _: int | None) -> int:
    return lasting.local_ms + lasting.retained_ms


NOTE = {"firnline.formats.paimon.reading.state._forbidden": _nothing}
HELD = {"firnline.policy.decide.keep_held": _none}


def _of_this_name(
    work: TableContext, state: State, *, but: str | None = None, finished: dict[str, Run] | None = None
) -> list[Run]:
    root, sealing = work.root(state), work.sealing(False)
    found = list_runs(work.store, root, state.table, sealing, but=but, finished=finished)
    return [run for run in found if run.uuid == state.uuid and run.plan["table"] == state.table]


GUARDS = {
    "a branch that others read is not dropped": Guard(
        {
            "firnline.formats.paimon.editing.dropping.refuse_read": _nothing,
            "firnline.formats.paimon.editing.expiry.refuse_read": _nothing,
        },
        ("read_with_a_branch", "branch_off", "drop"),
    ),
    "a drop takes what its plan saw": Guard(
        {"firnline.ops.runs.commit.refuse_changed": _nothing}, ("branch_off", "drop", "resume")
    ),
    "what can come back, or is held, is needed": Guard(
        {"firnline.ops.reachability.live_roots.may_come_back": _none},
        ("expire_later", "hold_what_went", "orphans", "resume"),
    ),
    "a tag stays for its time in every zone": Guard(
        {"firnline.formats.paimon.reading.snapshot.Lasting.ends_ms": _local_end}, ("tag_for_hours", "expire")
    ),
    "a purge spares what is needed again": Guard(
        {"firnline.ops.reachability.since_plan.ReachableSincePlan.spared": lambda self, keys: set()},
        ("expire_later", "hold_what_went", "resume"),
    ),
    "a hold on the table stops writers": Guard(
        {"firnline.formats.paimon.editing.tags.held": _options_as_they_are}, script="writers_begin_under_a_hold"
    ),
    "a hold on the table stops commits": Guard({**NOTE, **HELD}, script="a_hold_comes_before_a_commit"),
    "a hold on the table stops purges": Guard(
        {"firnline.ops.runs.guard.forbidden": _nothing}, script="a_hold_comes_before_a_purge"
    ),
    "what a view of the table needs stays": Guard(
        {"firnline.ops.neighbours.around._of_mirrors": _empty}, script="a_view_has_more_than_the_table"
    ),
    "runs count under whatever name they were planned": Guard(
        {"firnline.ops.table.context.TableContext.recorded": _of_this_name}, script="a_table_gets_another_name"
    ),
    "a folder has one name by whatever links": Guard(
        {"firnline.stores.real_paths.without_links": _as_it_is},
        script="a_view_is_in_the_warehouse_and_the_table_behind_a_link",
    ),
}

COVERED = {
    "the note against any removal": Guard(NOTE, script="a_hold_comes_before_a_commit"),
    "a hold on the table keeps every snapshot": Guard(HELD, script="a_hold_comes_before_a_commit"),
}
"""Guards of which one does the work of the other."""
