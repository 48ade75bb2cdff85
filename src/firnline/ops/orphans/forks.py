"""Forks: a table that went on in a catalog which nobody configured, from metadata that the known one has left behind.

Its metadata has a known uuid, lies in the known folder and may be older than the known table's, so only its snapshots
tell: they are in no version of the known table. Old metadata names snapshots too that the table does not have any more.
What tells them apart are the logs. Every document names those it was built on, so from the known one a chain of
logs leads to each that the table once was, and to none of a fork.

Where the chain is broken (a writer removed old metadata), a snapshot counts as the table's own if a record of ours says
that it expired, and as nobody's if its list is gone: then nobody can read it. Any other stops the search. The rest of a
commit that was never made looks the same as a fork, and only an operator can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from firnline.errors import FirnlineError, ObjectNotFound, RefusedForSafety
from firnline.model.locations import known_as
from firnline.model.snapshots import SnapshotId
from firnline.ops.history.reading import expired_snapshots
from firnline.ops.orphans.neighbours import Neighbour
from firnline.ports.formats import State, TableFormat

_THREADS = 16
_SHOWN = 5
Same = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ForkClaim:
    """A document that names snapshots which no known table has: each with the objects that lead to its files."""

    key: str
    name: str
    base: str | None
    strange: Mapping[SnapshotId, tuple[str, ...]]


@dataclass
class Lineage:
    """One uuid: the tables that have it, and what unreached documents say of it."""

    tables: Sequence[Neighbour]
    same: Same
    cutoff_ms: int
    logs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claims: list[ForkClaim] = field(default_factory=list)
    _texts: dict[str, str] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], state: State) -> None:
        """Takes note of a document. Of many that repeat each other's words, each word is held once."""
        log = self._log_of(state)
        self.logs[row["identity"]] = log
        strange = {each for each in state.graph.by_id if not any(each in table.state.graph for table in self.tables)}
        strange -= self._pointed
        if strange:
            found: dict[SnapshotId, tuple[str, ...]] = dict.fromkeys(strange, ())
            for owner, file in self._format.roots(state):
                if owner in strange and file.opens:
                    found[owner] = (*found[owner], self._texts.setdefault(file.key, file.key))
            self.claims.append(ForkClaim(row["key"], row["identity"], log[-1] if log else None, found))

    def forks(self) -> Iterator[tuple[ForkClaim, SnapshotId]]:
        """Yields documents that are none of the known tables' past, each with a snapshot that a reader can open."""
        if not self.claims:
            return
        past = self._past()
        own = {each for claim in self.claims if claim.name in past for each in claim.strange}
        strangers = [claim for claim in self.claims if claim.name not in past]
        if strangers and any(claim.strange.keys() - own for claim in strangers):
            own |= set(self._expired())
        for claim in strangers:
            left = claim.strange.keys() - own
            left -= self._snapshots_at(claim.base) if left and claim.base in past else set()
            readable = self._readable({each: claim.strange[each] for each in left})
            if readable is not None:
                yield claim, readable

    @cached_property
    def _pointed(self) -> set[SnapshotId]:
        """The snapshots that pointers lead to: every file of these stays, so none of them is in danger."""
        return {found.snapshot for each in self.tables for found in each.pointed if found.snapshot is not None}

    @property
    def _format(self) -> TableFormat:
        return self.tables[0].work.source.format

    def _log_of(self, state: State) -> tuple[str, ...]:
        _, *log = self._format.metadata_files(state)
        return tuple(self._texts.setdefault(name, name) for name in (known_as(each, self.same) for each in log))

    def _past(self) -> set[str]:
        """Returns every document that a known table was built on, as far as logs tell."""
        found: set[str] = set()
        waiting = [known_as(name, self.same) for each in self.tables for name in self._named_by(each)]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.logs.get(name, ())
        return found

    def _named_by(self, table: Neighbour) -> Iterator[str]:
        """Yields the table's own metadata, its log, and the log of the oldest in it: no search lists the others."""
        current, *log = self._format.metadata_files(table.state)
        yield from (current, *log)
        oldest = next(filter(None, map(self._read, log)), None)
        yield from () if oldest is None else self._format.metadata_files(oldest)

    def _read(self, key: str) -> State | None:
        """Returns what a document says; None where it is gone or damaged: then it proves nothing."""
        try:
            return self._format.table_of(key)
        except FirnlineError:
            return None

    def _snapshots_at(self, key: str | None) -> set[SnapshotId]:
        state = None if key is None else self._read(key)
        return set() if state is None else set(state.graph.by_id)

    def _expired(self) -> Iterator[SnapshotId]:
        """Yields the snapshots that the records and the history of the known tables say are expired."""
        for each in self.tables:
            for run in each.work.recorded(each.state):
                yield from (gone for event in run.attempts for gone in event.removal.ids)
            remembered = expired_snapshots(each.work.source, each.state, each.work.store)
            yield from (str(entry["snapshot-id"]) for entry in remembered)

    def _readable(self, snapshots: Mapping[SnapshotId, tuple[str, ...]]) -> SnapshotId | None:
        """Returns a snapshot of which anything is there that is old enough to be taken for garbage."""
        keys = sorted({key for each in snapshots.values() for key in each})
        with ThreadPoolExecutor(_THREADS) as pool:
            there = {key for key, is_there in zip(keys, pool.map(self._is_there, keys), strict=True) if is_there}
        return next((each for each in sorted(snapshots) if there.intersection(snapshots[each])), None)

    def _is_there(self, key: str) -> bool:
        try:
            modified_ms = self.tables[0].work.store.head(key).modified_ms
        except ObjectNotFound:
            return False
        return modified_ms is None or modified_ms < self.cutoff_ms


@dataclass
class Forks:
    """The lineages of known tables, which `tables` returns by their uuid: of each that a document is met of."""

    tables: Callable[[str], Sequence[Neighbour]]
    same: Same
    cutoff_ms: int
    lineages: dict[str, Lineage] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], state: State) -> None:
        if state.uuid not in self.lineages:
            self.lineages[state.uuid] = Lineage(self.tables(state.uuid), self.same, self.cutoff_ms)
        self.lineages[state.uuid].add(row, state)

    def refuse(self, gone: Set[str]) -> None:
        """Raises where a document may be a fork's, unless the operator says that nobody needs it."""
        every = ((uuid, found) for uuid, lineage in self.lineages.items() for found in lineage.forks())
        found = [(uuid, claim, snapshot) for uuid, (claim, snapshot) in every if claim.name not in gone]
        if not found:
            return
        uuid, first, snapshot = found[0]
        more = f"; {len(found) - 1} others do so too" if len(found) > 1 else ""
        raise RefusedForSafety(
            f"{first.key} is metadata of the table {uuid} and names the snapshot {snapshot}, which is in no known "
            f"version of it{more}",
            hint="another catalog may have gone on from there: configure it, or keep what it needs with --also; "
            f"if it was never committed, --dropped {' --dropped '.join(each.key for _, each, _ in found[:_SHOWN])}",
        )
