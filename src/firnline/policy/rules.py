"""The rules of a policy. Each is judged alone; a snapshot stays if any of them keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.errors import PolicyError
from firnline.model.times import format_duration
from firnline.policy.periods import Period

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
