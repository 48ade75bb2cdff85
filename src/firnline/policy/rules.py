"""The rules of a policy, each judged alone on a branch's timeline; a snapshot stays if any of them keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from firnline.errors import PolicyError
from firnline.model.snapshots import MAIN, Ref, Snapshot
from firnline.model.times import format_duration
from firnline.policy.periods import Period, newest_of_each
from firnline.policy.reasons import Judgement, Reason
from firnline.policy.refs import Case, StandingRefs


@dataclass(frozen=True, slots=True)
class BranchTimeline:
    """A branch's snapshots from its head down, and the same sorted by time, newest first.

    The two differ where clocks did: a child may be older than its parent. Equal times keep lineage order.
    """

    branch: str
    lineage: Sequence[Snapshot]
    by_time: Sequence[Snapshot]

    @staticmethod
    def of(case: Case, ref: Ref) -> BranchTimeline:
        lineage = list(case.graph.history(ref.snapshot))
        by_time = sorted(lineage, key=lambda snapshot: snapshot.timestamp_ms, reverse=True)
        return BranchTimeline(ref.name, lineage, by_time)

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


def timelines(case: Case, refs: StandingRefs) -> Iterator[BranchTimeline]:
    """Yields the timeline of each branch that stays, main first."""
    return (BranchTimeline.of(case, ref) for ref in refs.branches)


RULE_NAMES = ("last", "within", *(period.value for period in Period), "tags")


@dataclass(frozen=True, slots=True)
class KeepLast:
    """The newest `count` snapshots of each branch that stays; None keeps them all."""

    count: int | None

    def __post_init__(self) -> None:
        _need_count(self.count)

    @property
    def name(self) -> str:
        return "last"

    def __str__(self) -> str:
        return f"last {_count_text(self.count)}"


@dataclass(frozen=True, slots=True)
class KeepWithin:
    """Every snapshot of the table that is not older than the window, on a branch or not."""

    window_ms: int

    def __post_init__(self) -> None:
        if self.window_ms < 1:
            raise PolicyError("a window must be longer than nothing")

    @property
    def name(self) -> str:
        return "within"

    def __str__(self) -> str:
        return f"within {format_duration(self.window_ms)}"


@dataclass(frozen=True, slots=True)
class KeepPeriods:
    """The newest snapshot of each period of each branch that stays.

    For the newest `count` periods that have one, or for those inside the window; with neither, for all.
    """

    period: Period
    count: int | None = None
    window_ms: int | None = None

    def __post_init__(self) -> None:
        _need_count(self.count)
        if self.window_ms is None:
            return
        if self.count is not None:
            raise PolicyError(f"{self.name} takes a number or a window, not both")
        if self.window_ms < self.period.shortest_ms:
            window = format_duration(self.window_ms)
            raise PolicyError(f"{window} is shorter than one {self.period.noun} (m means minutes)")

    @property
    def name(self) -> str:
        return self.period.value

    def __str__(self) -> str:
        if self.window_ms is not None:
            return f"{self.name} within {format_duration(self.window_ms)}"
        return f"{self.name} {_count_text(self.count)}"


@dataclass(frozen=True, slots=True)
class KeepTags:
    """The snapshots of tags whose name matches a pattern. Such a tag never expires, whatever its own age."""

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.patterns or not all(self.patterns):
            raise PolicyError("a tag pattern must not be empty")

    @property
    def name(self) -> str:
        return "tags"

    def __str__(self) -> str:
        return f"tags {', '.join(self.patterns)}"


Rule = KeepLast | KeepWithin | KeepPeriods | KeepTags


def _need_count(count: int | None) -> None:
    if count is not None and count < 1:
        raise PolicyError(f"a number must be 1 or more, not {count}")


def _count_text(count: int | None) -> str:
    return "all" if count is None else str(count)
