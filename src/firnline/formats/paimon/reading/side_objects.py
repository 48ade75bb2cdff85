"""What a branch has beside snapshots and tags, and whether its time is over: long-lived changelogs and consumers.

Paimon goes by when a consumer's file was last written (`folder.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import Branch
from firnline.model.snapshots import MAIN
from firnline.model.times import format_duration, tell_due
from firnline.policy.native import LARGEST, Range
from firnline.policy.periods import cutoff_of, newer_than
from firnline.ports.abilities import SideObject

EXPIRATION = "consumer.expiration-time"


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer. `until_ms`: None where it counts for as long as its file is there."""

    following: int
    until_ms: int | None
    longest_ms: int | None

    def in_force(self, now_ms: int) -> bool:
        return self.until_ms is None or now_ms <= self.until_ms


def consumers_of(branch: Branch, modified: Mapping[str, int]) -> dict[str, Consumer]:
    """Returns the branch's consumers. One of unknown age counts for ever."""
    text, where = branch.schema.options.get(EXPIRATION), branch.schema.where
    longest = None if text is None else fields.duration_ms(text, EXPIRATION, where)
    found: dict[str, Consumer] = {}
    for name, following in branch.consumers.items():
        written = modified.get(names.consumer_file(branch.name, name))
        ends = None if longest is None or written is None else written + longest
        found[name] = Consumer(following, ends, longest)
    return found


CHANGELOG, CONSUMER = "changelog", "consumer"


class SideFate(NamedTuple):
    """What becomes of one, and why."""

    side_object: SideObject
    goes: bool


def changelog_id(branch: str, number: int) -> str:
    return f"{CHANGELOG} {names.snapshot_id(branch, number)}"


def consumer_id(branch: str, name: str) -> str:
    return f"{CONSUMER} {consumer_name(branch, name)}"


def consumer_name(branch: str, name: str) -> str:
    return f"{branch}:{name}" if branch else name


def changelog_fates(
    branch: Branch, times: Mapping[int, int], consumers: Mapping[str, Consumer], rule: Range, now_ms: int
) -> Iterator[SideFate]:
    """Yields each of the branch's changelogs, `times` by number, also those that a commit is about to write.

    The rule is Paimon's own: an unbroken range that is counted from the newest snapshot, and whose newest never goes.
    """
    if not times:
        return
    judged = _Judged(branch, times, consumers, rule, now_ms)
    for number in sorted(times):
        goes = number < judged.first
        why = judged.why_gone(number) if goes else judged.why_kept(number)
        yield SideFate(SideObject(CHANGELOG, names.snapshot_id(branch.name, number), why, times[number]), goes)


class _Judged:
    """One branch's changelogs, and the lowest number that stays."""

    def __init__(
        self, branch: Branch, times: Mapping[int, int], consumers: Mapping[str, Consumer], rule: Range, now_ms: int
    ) -> None:
        self.branch, self.times = branch, times
        self.rule = rule
        self.latest = branch.latest
        self.cutoff_ms = cutoff_of(self.rule.age_ms, now_ms)
        reading = {name: each.following for name, each in consumers.items() if each.in_force(now_ms)}
        self.reader = min(reading, key=lambda name: reading[name], default=None)
        self.read_from = LARGEST if self.reader is None else reading[self.reader]
        self.first = min(times)
        if self.latest is not None and branch.decoupled:
            below = min(self.read_from, max(times))
            self.first = self.rule.first_kept(times, self.cutoff_ms, self.latest, below)

    def why_kept(self, number: int) -> str:
        if self.latest is None:
            return "the branch has no snapshot to count from"
        rule, reader = self.rule, f"consumer {self.reader}, which reads from {self.read_from} on"
        told = (
            (not self.branch.decoupled, "the table has no rule for it: its changelogs go with their snapshots by now"),
            (
                number > self.latest - rule.at_least,
                f"changelog.num-retained.min: {self.latest - number + 1} of {rule.at_least}",
            ),
            (number >= self.read_from, reader),
            (self.times[number] >= self.cutoff_ms, f"changelog.time-retained: {newer_than(rule.age_ms)}"),
            (number == max(self.times), "the newest changelog always stays"),
            (number >= min(self.times) + rule.limit, f"no more than {rule.limit} go at once"),
        )
        return next((text for holds, text in told if holds), "above one that stays")

    def why_gone(self, number: int) -> str:
        assert self.latest is not None  # nothing goes without one
        if number <= self.latest - self.rule.at_most:
            return f"changelog.num-retained.max: more than {self.rule.at_most}"
        return f"changelog.time-retained: older than {format_duration(self.rule.age_ms)}"


def consumer_fates(branch: Branch, consumers: Mapping[str, Consumer], now_ms: int) -> Iterator[SideFate]:
    """Yields each consumer; one that nobody has moved for as long as the table says no longer holds anything."""
    for name, consumer in sorted(consumers.items()):
        goes = not consumer.in_force(now_ms)
        told = "" if consumer.until_ms is None else f"; its time ends at {tell_due(consumer.until_ms)}"
        why = (
            f"consumer.expiration-time: not modified for longer than {format_duration(consumer.longest_ms or 0)}"
            if goes
            else f"it reads from {consumer.following} on{told}"
        )
        yield SideFate(SideObject(CONSUMER, consumer_name(branch.name, name), why), goes)


def dropped_fates(branch: Branch, numbers: Iterator[int]) -> Iterator[SideFate]:
    """Yields what goes with a branch, however young."""
    why = f"it goes with the branch {branch.name or MAIN}"
    for number in sorted(numbers):
        yield SideFate(SideObject(CHANGELOG, names.snapshot_id(branch.name, number), why), True)
    for name in sorted(branch.consumers):
        yield SideFate(SideObject(CONSUMER, consumer_name(branch.name, name), why), True)
