"""Rules judged on a timeline: the lineage of one branch, across the holes that earlier expiries left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from firnline.model.snapshots import MAIN, Ref, Snapshot
from firnline.policy.periods import newest_of_each
from firnline.policy.reasons import Judgement, Reason
from firnline.policy.refs import Case, StandingRefs
from firnline.policy.rules import KeepLast, KeepPeriods


@dataclass(frozen=True, slots=True)
class Timeline:
    """A branch's snapshots from its head down, and the same sorted by time, newest first.

    The two differ where clocks did: a child may be older than its parent. Equal times keep lineage order.
    """

    branch: str
    lineage: Sequence[Snapshot]
    by_time: Sequence[Snapshot]

    @staticmethod
    def of(case: Case, ref: Ref) -> Timeline:
        lineage = list(case.graph.history(ref.snapshot))
        by_time = sorted(lineage, key=lambda snapshot: snapshot.timestamp_ms, reverse=True)
        return Timeline(ref.name, lineage, by_time)

    def numbered(self, rule: str, number: int, note: str = "") -> Reason:
        where = "" if self.branch == MAIN else f" on {self.branch}"
        return Reason(rule, f"#{number}{where}{note}")

    def eligible(self, rule: KeepPeriods, now_ms: int) -> Iterator[Snapshot]:
        """Yields what a calendar rule looks at, newest first."""
        if rule.window_ms is None:
            return iter(self.by_time)
        cutoff = now_ms - rule.window_ms
        return takewhile(lambda snapshot: snapshot.timestamp_ms >= cutoff, self.by_time)

    def judge(self, rule: KeepLast | KeepPeriods, now_ms: int) -> Iterator[Judgement]:
        """Yields what the rule keeps of this timeline."""
        return self._last(rule) if isinstance(rule, KeepLast) else self._periods(rule, now_ms)

    def _last(self, rule: KeepLast) -> Iterator[Judgement]:
        for number, snapshot in enumerate(islice(self.lineage, rule.count), 1):
            yield snapshot.id, self.numbered(rule.name, number)

    def _periods(self, rule: KeepPeriods, now_ms: int) -> Iterator[Judgement]:
        number = 0
        starts = newest_of_each(rule.period, self.eligible(rule, now_ms))
        for number, snapshot in enumerate(islice(starts, rule.count), 1):
            yield snapshot.id, self.numbered(rule.name, number)
        # Fewer periods than asked for: the start of the history stands in for those that are missing. Where it
        # is the newest of its own period as well, its first reason counts.
        if rule.window_ms is None and (rule.count is None or number < rule.count):
            yield self.by_time[-1].id, self.numbered(rule.name, number + 1, " (oldest)")


def timelines(case: Case, refs: StandingRefs) -> Iterator[Timeline]:
    """Yields the timeline of each branch that stays, main first."""
    return (Timeline.of(case, ref) for ref in refs.branches)
