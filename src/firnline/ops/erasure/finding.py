"""Which snapshots of a table, live or of a tier, name a data file; and what stands in the way of erasing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from shlex import quote
from typing import Any

from firnline.errors import RefusedForSafety, UnsupportedFormat
from firnline.model.locations import identity, stem_of
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant
from firnline.ops.neighbours.folders import Folders
from firnline.ops.reachability.live_roots import forbidden, may_come_back
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import TableContext
from firnline.plans.request import Request
from firnline.ports.erasing import ErasesFiles, Namers
from firnline.ports.formats import State, TableFormat, UndoWindow
from firnline.tiers.places import PlacesElsewhere, TierPlaces

Stems = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableLoss:
    """What one table would lose: `tier` is where it is. `bundles` are objects of a deep tier in which the files lie
    together with others; `refused` is why nothing can be erased there now.
    """

    tier: str
    state: State
    naming: Namers
    bundles: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def is_nothing(self) -> bool:
        return not self.naming.units and not self.bundles

    def to_json(self) -> dict[str, Any]:
        return {
            "tier": self.tier,
            "table": self.state.table,
            "files": [{"path": each.path, "bytes": each.size, "rows": each.rows} for each in self.naming.files],
            "snapshots": [_snapshot_json(self.state, each) for each in newest_first(self.state, self.naming.losing)],
            "mentioned_by": newest_first(self.state, self.naming.mentioning),
            "manifests": len(self.naming.units),
            "bundles": list(self.bundles),
            "refused": self.refused,
        }


def newest_first(state: State, snapshots: Set[SnapshotId]) -> list[SnapshotId]:
    return sorted(snapshots, key=lambda each: (state.graph[each].timestamp_ms, each), reverse=True)


def refs_of(state: State, snapshot: SnapshotId) -> list[str]:
    return sorted(ref.name for ref in state.refs.values() if ref.snapshot == snapshot)


def _snapshot_json(state: State, snapshot: SnapshotId) -> dict[str, Any]:
    at = format_instant(state.graph[snapshot].timestamp_ms)
    return {"snapshot": snapshot, "timestamp": at, "refs": refs_of(state, snapshot)}


@dataclass(frozen=True, slots=True)
class AskedFiles:
    """Files that shall go, by the names that they were asked for with; each with all places where it may lie in the
    store of one table.
    """

    places: Mapping[str, frozenset[str]]

    @property
    def every_place(self) -> frozenset[str]:
        return frozenset().union(*self.places.values())

    @property
    def identities(self) -> frozenset[str]:
        return frozenset(map(identity, self.every_place))

    def among(self, names: Iterable[str]) -> set[str]:
        """Returns those that are among some files, however these are spelled."""
        there = set(map(identity, names))
        return {asked for asked, places in self.places.items() if there & set(map(identity, places))}


def places_in(path: str, root: str, others: Sequence[str], live: State, there: State | None) -> frozenset[str]:
    """Returns the locations that a file of a live table may have in the tier at `root`. What came by way of other
    tiers, with the roots `others`, lies deeper below. The location of the tier's own table, `there`, tells of a way by
    tiers that firnline.yaml has no more.
    """
    found = {TierPlaces(root).place(way) for way in _ways(path, others)}
    if there is not None:
        found.add(TierPlaces(PlacesElsewhere.back_to(live.location, root, there.location).root).place(path))
    return frozenset(found)


def _ways(path: str, roots: Sequence[str]) -> Iterator[str]:
    yield path
    for root in roots:
        yield from _ways(TierPlaces(root).place(path), [each for each in roots if each != root])


def erases(table_format: TableFormat, table: str) -> ErasesFiles:
    """Returns the format. Raises UnsupportedFormat where nothing can be taken out of snapshots that stay."""
    if isinstance(table_format, ErasesFiles):
        return table_format
    raise UnsupportedFormat(
        f"{table}: no file can be taken out of snapshots of {table_format.name} tables",
        hint="delete the rows with an engine, then expire the snapshots that have them; nothing was changed",
    )


def begin_with(table_format: TableFormat, state: State) -> dict[SnapshotId, str]:
    """Returns the unit that each snapshot begins with."""
    return {owner: file.key for owner, file in table_format.roots(state) if file.opens}


def refuse_hopeless(work: TableContext, state: State, files: Set[str], naming: Namers) -> None:
    """Raises RefusedForSafety where it is known before anything is written that the files cannot go."""
    refuse_kept(state, naming.snapshots, work.now())
    outside = policy_in_force(state, work.source.name, work.config, Request()).include_outside.value
    own = (
        None if outside else (tuple(map(stem_of, state.owned)), Folders.of(state, work.source.format, work.real).owned)
    )
    for each in naming.files:
        if each.lives:
            _refuse_place(work, state, each.path, own)
    table_format = erases(work.source.format, state.table)
    for run, removal in may_come_back(work, state, work.now()):
        revived = work.source.format.with_removal(state, removal)
        if removal.ids and table_format.naming(revived, files, work.progress, set(removal.ids)).losing:
            raise RefusedForSafety(
                f"{run.id} may still bring it back",
                hint=f"`firnline purge {quote(str(run.id))}` once its grace is over",
            )


def _refuse_place(work: TableContext, state: State, path: str, own: tuple[Stems, Stems] | None) -> None:
    """Raises RefusedForSafety where no purge removes what lies there: a link, or what lies outside the table's `own`
    folders, by its name or really; None where it may lie anywhere.
    """
    called = identity(path)
    there, led_to = work.real.entry(called), work.real(called)
    if led_to != there:
        raise RefusedForSafety(
            f"{path} is a link to {led_to}, and who else goes through it is not known",
            hint="put the file itself in its place, if nothing else needs it where it is",
        )
    if own is not None and not (called.startswith(own[0]) and there.startswith(own[1])):
        at = "" if there == called else f": it is {there}"
        raise RefusedForSafety(
            f"{path} lies outside the own folders of {state.table}{at}",
            hint="`include-outside: true` in firnline.yaml lets it go",
        )


def refuse_kept(state: State, naming: Set[SnapshotId], now_ms: int) -> None:
    """Raises RefusedForSafety where a catalog takes no snapshot in the place of another, where the table or a hold
    forbids every removal, or a hold is on a snapshot that is among those `naming` the files: it is to stay as it is.
    """
    if not naming:
        return
    if state.capabilities.undo is not UndoWindow.AFTER_COMMIT:
        raise RefusedForSafety(
            f"the catalog of {state.table} takes no snapshot in the place of another",
            hint="delete the rows with an engine, have it rewrite the manifests, which still tell of the file, and "
            "expire every snapshot before that, with --grace 0s; then erase again, for the tiers",
        )
    reason = forbidden(state, now_ms, handed_on=True)
    if reason:
        raise RefusedForSafety(f"nothing of {state.table} may be removed now: {reason}", hint="lift that first")
    for hold in state.holds:
        if hold.snapshot in naming and hold.in_force(now_ms):
            raise RefusedForSafety(
                f"the hold {hold.name} is on {hold.snapshot} of {state.table}, which names the file",
                hint=f"`firnline hold release {quote(state.table)} {quote(hold.name)}` ends it, if erasure goes first",
            )
