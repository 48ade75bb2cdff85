"""Why a snapshot stays: one small value per rule, ref, hold or pin that keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firnline.model.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class Reason:
    """What keeps a snapshot. `rule` is for programs to group by, the whole text for people to read."""

    rule: str
    detail: str = ""

    def __str__(self) -> str:
        if not self.detail or self.detail.startswith(","):
            return self.rule + self.detail
        return f"{self.rule} {self.detail}"


Judgement = tuple[SnapshotId, Reason]
"""A snapshot and one reason for which it stays."""


class ReasonBook:
    """Collects the reasons of every snapshot that stays, in the order in which they are given.

    One Reason object serves all snapshots it is given for: a million snapshots have few distinct reasons.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[SnapshotId, tuple[Reason, ...]] = {}

    @property
    def kept(self) -> dict[SnapshotId, tuple[Reason, ...]]:
        return self._kept

    def add(self, snapshot: SnapshotId, reason: Reason) -> None:
        """Notes a reason; an equal one is noted once."""
        before = self._kept.get(snapshot, ())
        if reason not in before:
            self._kept[snapshot] = (*before, reason)

    def add_all(self, judgements: Iterable[Judgement]) -> None:
        for snapshot, reason in judgements:
            self.add(snapshot, reason)

    def add_first(self, judgements: Iterable[Judgement]) -> None:
        """Notes each reason unless its rule already keeps the snapshot, say on another branch."""
        for snapshot, reason in judgements:
            before = self._kept.get(snapshot, ())
            if all(known.rule != reason.rule for known in before):
                self._kept[snapshot] = (*before, reason)
