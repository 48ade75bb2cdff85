"""Guards of firnline's that worlds with surroundings must miss: each taken out for a moment, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from firnline.formats.paimon.reading.snapshot import Lasting


def _nothing(*_: object, **__: object) -> None: ...


def _none(*_: object, **__: object) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True)
class Guard:
    """Where it stands, what stands there instead, and the steps that meet it."""

    targets: tuple[str, ...]
    instead: Any
    met: tuple[str, ...]

    def take_out(self, monkey: pytest.MonkeyPatch) -> None:
        for target in self.targets:
            monkey.setattr(target, self.instead)


def _local_end(lasting: Lasting, _: int | None) -> int:
    return lasting.local_ms + lasting.retained_ms


GUARDS = {
    "a branch that others read is not dropped": Guard(
        ("firnline.formats.paimon.editing.dropping.refuse_read", "firnline.formats.paimon.editing.expiry.refuse_read"),
        _nothing,
        ("read_with_a_branch", "branch_off", "drop"),
    ),
    "a drop takes what its plan saw": Guard(
        ("firnline.ops.runs.commit.refuse_changed",), _nothing, ("branch_off", "drop", "resume")
    ),
    "what can come back, or is held, is needed": Guard(
        ("firnline.ops.reachability.live_roots.may_come_back",),
        _none,
        ("expire_later", "hold_what_went", "orphans", "resume"),
    ),
    "a tag stays for its time in every zone": Guard(
        ("firnline.formats.paimon.reading.snapshot.Lasting.ends_ms",), _local_end, ("tag_for_hours", "expire")
    ),
    "a purge spares what is needed again": Guard(
        ("firnline.ops.reachability.since_plan.ReachableSincePlan.spare",),
        lambda self, key: False,
        ("expire_later", "hold_what_went", "resume"),
    ),
}
