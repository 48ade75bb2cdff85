"""Paimon's own expiry, for real: on a table, or beside it on a copy whose losses are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firnline.testing.paimon.gateway import Jvm
from firnline.testing.paimon.java_table import JavaTable
from firnline.testing.paimon.shapes import MAIN

EVER = 2**31 - 1


@dataclass(frozen=True)
class Retention:
    """What Paimon is told to keep, in its own terms; a changelog that names nothing goes with its snapshot."""

    least: int = 1
    most: int = EVER
    time_ms: int = 0
    limit: int = EVER
    changelog_least: int | None = None
    changelog_most: int | None = None
    changelog_time_ms: int | None = None
    consumer_changelog_only: bool = False

    def config(self, jvm: Jvm) -> Any:
        made = jvm.paimon("options.ExpireConfig").builder()
        made = made.snapshotRetainMin(self.least).snapshotRetainMax(self.most).snapshotMaxDeletes(self.limit)
        made = made.snapshotTimeRetain(jvm.duration(self.time_ms)).consumerChangelogOnly(self.consumer_changelog_only)
        if self.changelog_least is not None:
            made = made.changelogRetainMin(self.changelog_least)
        if self.changelog_most is not None:
            made = made.changelogRetainMax(self.changelog_most)
        if self.changelog_time_ms is not None:
            made = made.changelogTimeRetain(jvm.duration(self.changelog_time_ms))
        return made.build()


def expire(jvm: Jvm, table: JavaTable, retention: Retention, branch: str = MAIN) -> int:
    """Returns how many snapshots Paimon expired. Files that only other branches need go with them."""
    return int(table.open(branch).newExpireSnapshots().config(retention.config(jvm)).expire())


def expire_changelogs(jvm: Jvm, table: JavaTable, retention: Retention, branch: str = MAIN) -> int:
    """Returns how many changelogs Paimon expired."""
    return int(table.open(branch).newExpireChangelog().config(retention.config(jvm)).expire())
