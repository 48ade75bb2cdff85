"""Paimon's own expiry of snapshots and changelogs, told what to keep in its own terms."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from harness.paimon.gateway import Jvm
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN

EVER = 2**31 - 1


@dataclass(frozen=True)
class Retention:
    """What Paimon is told to keep. A changelog lives longer than its snapshot only where one of its own fields says so.

    `older_than` (milliseconds of the epoch) is what Paimon's procedures have: it becomes a time to retain. So does
    `changelog_older_than`; `changelog_limit` changelogs go at once.
    """

    least: int = 1
    most: int = EVER
    older_than: int | None = None
    limit: int = EVER
    changelog_least: int | None = None
    changelog_most: int | None = None
    consumer_changelog_only: bool = False
    changelog_older_than: int | None = None
    changelog_limit: int = EVER

    def config(self, jvm: Jvm) -> Any:
        made = jvm.paimon("options.ExpireConfig").builder()
        made = made.snapshotRetainMin(self.least).snapshotRetainMax(self.most).snapshotMaxDeletes(self.limit)
        made = made.consumerChangelogOnly(self.consumer_changelog_only)
        if self.older_than is not None:
            made = made.snapshotTimeRetain(jvm.duration(int(time.time() * 1000) - self.older_than))
        made = made.changelogMaxDeletes(self.changelog_limit)
        if self.changelog_older_than is not None:
            made = made.changelogTimeRetain(jvm.duration(int(time.time() * 1000) - self.changelog_older_than))
        if self.changelog_least is not None:
            made = made.changelogRetainMin(self.changelog_least)
        if self.changelog_most is not None:
            made = made.changelogRetainMax(self.changelog_most)
        return made.build()


def expire(jvm: Jvm, table: JavaTable, retention: Retention, branch: str = MAIN) -> int:
    """Returns how many snapshots Paimon expired. Files that only other branches need go with them."""
    return int(table.open(branch).newExpireSnapshots().config(retention.config(jvm)).expire())


def expire_changelogs(jvm: Jvm, table: JavaTable, retention: Retention, branch: str = MAIN) -> int:
    """Returns how many changelogs Paimon expired."""
    return int(table.open(branch).newExpireChangelog().config(retention.config(jvm)).expire())
