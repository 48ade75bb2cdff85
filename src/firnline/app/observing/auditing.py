"""The audit log as it is configured: what runs append to, and what `firnline audit` reads."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.app.catalogs import absolute
from firnline.errors import UsageError
from firnline.journal.events import UNSEALED, Sealing
from firnline.model.times import parse_instant
from firnline.ports.catalogs import TableName
from firnline.settings import audit_setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from firnline.app.stores import Stores
    from firnline.journal.audit.appending import AuditLog
    from firnline.journal.audit.entries import AuditEntry
    from firnline.journal.audit.verifying import Verified
    from firnline.policy.parse import Section
    from firnline.ports.observing.news import News
    from firnline.ports.observing.watch import Witness


@dataclass(frozen=True, slots=True)
class ShownEntries:
    """Which entries are shown: those of a table, of a run, and since an instant; None asks for all."""

    table: str | None = None
    run: str | None = None
    since_ms: int | None = None

    def entries(self, found: Iterator[AuditEntry]) -> Iterator[AuditEntry]:
        for each in found:
            news = each.news
            is_of = self.table in (None, news["table"]) and self.run in (None, news["run"])
            if is_of and (self.since_ms is None or parse_instant(news["at"]) >= self.since_ms):
                yield each


@dataclass(frozen=True, slots=True)
class Auditing:
    """The log that `audit:` names. Only the operator's own key seals it: others must be able to verify."""

    config: Section
    stores: Stores
    sealing: Callable[[bool], Sealing]

    def witness(self) -> Witness | None:
        """Returns what writes every stage into the log before it happens; None where no log is kept."""
        if audit_setting(self.config) is None:
            return None
        opened: list[AuditLog] = []

        def attest(news: News) -> None:
            if not opened:  # at first use: looking at tables must not ask the log's store for anything
                opened.append(self.log())
            opened[0].attest(news)

        return attest

    def log(self) -> AuditLog:
        """Returns the log. Raises UsageError where none is kept."""
        from firnline.journal.audit.appending import AuditLog
        from firnline.journal.audit.entries import audit_root

        location = audit_setting(self.config)
        if location is None:
            raise UsageError("no audit log is kept", hint="write `audit: LOCATION` into firnline.yaml")
        place = absolute(location)
        store = self.stores.open(self.stores.settings_of(TableName.at(place)))
        sealing = self.sealing(False)
        return AuditLog(store, audit_root(place), this_user(), sealing if sealing.required else UNSEALED)

    def entries(self, wanted: ShownEntries) -> Iterator[AuditEntry]:
        """Yields the wanted entries, oldest first. Raises UnreadableMetadata where one is damaged or missing."""
        from firnline.journal.audit.verifying import read_entries

        log = self.log()
        return wanted.entries(read_entries(log.store, log.root))

    def verify(self, noted: str | None) -> Verified:
        """Returns the log's last entry, and from which entry on the log is sealed. Raises UnreadableMetadata at the
        first entry that is not as it was written, and if the end that was noted before is not in the log.
        """
        from firnline.journal.audit.verifying import parse_end, verify_log

        log = self.log()
        return verify_log(log.store, log.root, log.sealing, None if noted is None else parse_end(noted))


def this_user() -> dict[str, str]:
    """Returns who acts: the user, the host and the process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    return {"user": user, "host": socket.gethostname(), "process": str(os.getpid())}
