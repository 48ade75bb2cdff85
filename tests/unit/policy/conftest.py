"""A small language for histories, so that a test reads as a table of times and expected reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from firnline.model.graph import Graph
from firnline.model.holds import Hold, Pin
from firnline.model.snapshots import MAIN, Ref, RefKind, Snapshot
from firnline.model.times import DAY_MS
from firnline.policy.decide import Decision, decide
from firnline.policy.native import NativeRetention
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.rules import Rule
from firnline.policy.why import explain_expired

NOW = "2026-08-22 12:00"


def instant(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


@dataclass
class History:
    """A table under construction. Its snapshots are named by the test; times are UTC."""

    now: str = NOW
    native: NativeRetention = field(default_factory=lambda: NativeRetention(5 * DAY_MS, 1))
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    refs: dict[str, Ref] = field(default_factory=dict)
    current: str | None = None

    def commit(self, name: str, time: str, parent: str | None = None) -> History:
        self.snapshots[name] = Snapshot(name, parent, instant(time))
        return self

    def chain(self, *times: str, branch: str = MAIN, onto: str | None = None) -> History:
        """Commits one snapshot per time, oldest first, each named by its time, and moves the branch to the last."""
        for time in times:
            self.commit(time, time, onto)
            onto = time
        assert onto is not None
        self.branch(branch, onto)
        return self

    def branch(self, name: str, at: str, **retention: int) -> History:
        self.refs[name] = Ref(name, RefKind.BRANCH, at, **retention)
        if name == MAIN:
            self.current = at
        return self

    def tag(self, name: str, at: str, **retention: int) -> History:
        self.refs[name] = Ref(name, RefKind.TAG, at, **retention)
        return self

    def decide(self, *rules: Rule, holds: tuple[Hold, ...] = (), pins: tuple[Pin, ...] = ()) -> Decision:
        return decide(
            Graph(self.snapshots.values()),
            self.refs,
            self.current,
            self.native,
            policy_of(*rules),
            now_ms=instant(self.now),
            holds=holds,
            pins=pins,
        )

    def kept(self, *rules: Rule, holds: tuple[Hold, ...] = (), pins: tuple[Pin, ...] = ()) -> dict[str, list[str]]:
        """Returns the reasons, as people read them, of every snapshot that stays."""
        decision = self.decide(*rules, holds=holds, pins=pins)
        return {name: [str(reason) for reason in reasons] for name, reasons in decision.kept.items()}

    def why_gone(self, name: str, *rules: Rule) -> tuple[str, ...]:
        assert name in self.decide(*rules).expired
        return explain_expired(
            name,
            Graph(self.snapshots.values()),
            self.refs,
            self.current,
            self.native,
            policy=policy_of(*rules),
            now_ms=instant(self.now),
        )


def policy_of(*rules: Rule) -> Policy:
    return Policy(tuple(Setting(rule, Source(Level.ASKED)) for rule in rules))


@pytest.fixture
def history() -> History:
    return History()


@pytest.fixture
def at() -> Callable[[str], int]:
    return instant
