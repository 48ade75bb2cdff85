"""The verbs that look: nothing is changed, but for the objects of its own with which a store is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from firnline.app.moments import Cutoff, KeepRules, checked_rules, cutoff_ms
from firnline.app.naming import Snapshot, Table, snapshot_meant, table_meant
from firnline.app.observing.auditing import ShownEntries
from firnline.app.places import Places
from firnline.app.requests import RunOptions, request_of, takes
from firnline.ops.runs.decision import policy_in_force
from firnline.ports.probe import StoreVerdicts

if TYPE_CHECKING:  # each verb loads what it works with: a small plan is mostly imports
    from firnline.app.verbs.answers import TableHistory, TableNames, TablePolicy, WrittenPolicy
    from firnline.journal.audit.entries import AuditEntry
    from firnline.journal.audit.verifying import Verified
    from firnline.ops.looking.check import Checked
    from firnline.ops.looking.findings import Diagnosis
    from firnline.ops.looking.permissions import Permissions
    from firnline.ops.looking.why import Explanation
    from firnline.ops.tiers.whereabouts import TableTiers


class LookingVerbs:
    """What can be seen of a lake. `file` is its configuration if named."""

    places: Places
    file: str | None

    @property
    def catalogs(self) -> Sequence[str]:
        """The names of the configured catalogs."""
        return list(self.places.catalogs.configured)

    def tables(self, catalog: str | None = None) -> TableNames:
        """Returns every table of every configured catalog, or of one; or tables of a warehouse that no catalog has.
        Each is a name that every verb takes.
        """
        from firnline.app.verbs.answers import TableNames

        return TableNames(self.places.tables(catalog))

    @takes(RunOptions)
    def why(self, table: Table, what: Snapshot, **options: Unpack[RunOptions]) -> Explanation:
        """Returns what keeps a snapshot, a ref or a file; or why nothing does."""
        from firnline.ops.looking.why import why

        return why(self.places.table_context(table), request_of(**options), snapshot_meant(what))

    def policy(self, table: Table, keep: KeepRules | None = None) -> TablePolicy:
        """Returns the policy in force on a table, every value with its source."""
        from firnline.app.verbs.answers import TablePolicy
        from firnline.plans.request import Request

        source = self.places.source(table)
        state = source.load()
        request = Request(keep=checked_rules(keep))
        return TablePolicy(state, policy_in_force(state, source.name, self.places.config, request))

    def check_policy(self) -> WrittenPolicy:
        """Returns the policy as it is written. Raises PolicyError unless every name in it means a catalog, a namespace
        or a table that exists: a rule under a misspelt name protects nothing.
        """
        self.places.catalogs.refuse_unknown_names(self.places.config)
        from firnline.app.verbs.answers import WrittenPolicy

        return WrittenPolicy.of(self.places.config)

    def check(self, table: Table) -> Checked:
        """Returns whether every file that the table's snapshots need exists, with its size. Changes nothing."""
        from firnline.app.looking import check_table

        return check_table(self.places, table)

    def check_store(self, location: str) -> StoreVerdicts:
        """Returns what the store at a location really does. Writes a few objects of its own and removes them again."""
        return self.places.stores.check(location)

    def doctor(self, what: str | None = None) -> Diagnosis:
        """Returns what is configured, reachable and permitted. `what` names one catalog, or a table to try."""
        from firnline.app.doctor import examine

        return examine(self.places, self.file, what)

    def permissions(self, command: str, store: str = "s3", table: Table | None = None) -> Permissions:
        """Returns the least that a command needs to be allowed on a store, or on one very table."""
        from firnline.ops.looking.permissions import permissions

        return permissions(command, store, None if table is None else self.places.table_context(table))

    def expired_snapshots(self, table: Table) -> Iterator[Mapping[str, Any]]:
        """Yields the snapshots that the table remembers, as they stood in its metadata. Reads them when asked."""
        from firnline.ops.history.reading import expired_snapshots

        work = self.places.table_context(table)
        return expired_snapshots(work.source, work.source.load(), work.store)

    def history(
        self, table: Table, *, since: Cutoff | None = None, until: Cutoff | None = None, plot: str | Path | None = None
    ) -> TableHistory:
        """Returns the table's days, and what of its history could not be read. Changes nothing."""
        from firnline.app.looking import timeline_of_table
        from firnline.app.verbs.answers import TableHistory
        from firnline.ops.history.reading import check_plot_name, write_plot
        from firnline.ops.history.timeline import Span

        if plot is not None:
            check_plot_name(Path(plot))
        timeline, trouble = timeline_of_table(self.places, table, Span(cutoff_ms(since), cutoff_ms(until)))
        if plot is not None:
            write_plot(timeline, Path(plot))
        return TableHistory(timeline, trouble)

    def tiers(self, table: Table) -> TableTiers:
        """Returns which tiers have each known snapshot of a table (the table itself counts as one), what each tier
        holds, and which restores were asked for. Changes nothing.
        """
        from firnline.app.tiers import Tiers

        return Tiers(self.places).of_table(table)

    def audit(
        self, table: Table | None = None, *, run: str | None = None, since: Cutoff | None = None
    ) -> list[AuditEntry]:
        """Returns what was done to tables, by whom and when: every stage before it happened, and its outcome."""
        wanted = ShownEntries(None if table is None else str(table_meant(table)), run, cutoff_ms(since))
        return list(self.places.auditing.entries(wanted))

    def verify_audit(self, end: str | None = None) -> Verified:
        """Returns how far the log of what was done is whole. Raises where an entry was changed, is missing or doubled,
        or where an `end` that was shown before is not in it.
        """
        return self.places.auditing.verify(end)
