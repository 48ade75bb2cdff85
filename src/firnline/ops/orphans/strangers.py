"""Metadata that no root reaches: each must be an old one of a table whose needs were counted, in that table's folder.

Anything else means that files here may be needed by a table that was not asked: a table of a catalog that is not
configured, a table that went on in another catalog while the one here still has its old pointer or went another way
(see `forks`), or a folder with two names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from firnline.errors import CollectionForbidden, FirnlineError, RefusedForSafety
from firnline.model.locations import known_as
from firnline.ops.orphans.forks import Forks
from firnline.ops.orphans.neighbours import Neighbour
from firnline.ops.reachability.live_roots import forbidden
from firnline.ports.formats import Formats, State, TableFormat

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 16
_TORN = "move it away, or repair it; what that table needs would look like garbage"


@dataclass(frozen=True)
class Known:
    """What is known of all tables by their uuid: their metadata, the folders they write to, and the time of the newest;
    `everywhere` are all those folders. What was written after `cutoff_ms` may be on its way to a commit.
    """

    files: dict[str, set[str]]
    folders: dict[str, set[str]]
    newest: dict[str, int]
    everywhere: set[str]
    same: tuple[tuple[str, str], ...]
    cutoff_ms: int

    @staticmethod
    def of(neighbours: Sequence[Neighbour], same: tuple[tuple[str, str], ...], cutoff_ms: int) -> Known:
        known = Known({}, {}, {}, set(), same, cutoff_ms)
        for each in neighbours:
            known.add(each)
        return known

    def beside(self, own: Sequence[Neighbour]) -> Known:
        """Returns the same and what is known of some more tables."""
        by_uuid = (dict(self.files), dict(self.folders), dict(self.newest))
        known = Known(*by_uuid, set(self.everywhere), self.same, self.cutoff_ms)
        for each in own:
            for sets in (known.files, known.folders):
                sets[each.state.uuid] = set(sets.get(each.state.uuid, ()))
        for each in own:
            known.add(each)
        return known

    @cached_property
    def every_file(self) -> list[str]:
        return sorted(set().union(*self.files.values()))

    def add(self, each: Neighbour) -> None:
        state, table_format = each.state, each.work.source.format
        files = {known_as(name, self.same) for name in table_format.metadata_files(state)}
        places = {known_as(place.folder, self.same).rstrip("/") for place in each.places}
        self.files.setdefault(state.uuid, set()).update(files)
        folders = places | {_folder(name) for name in files}
        self.folders.setdefault(state.uuid, set()).update(folders)
        self.everywhere.update(folders)
        self.newest[state.uuid] = max(self.newest.get(state.uuid, 0), table_format.written_ms(state))


@dataclass
class Departed:
    """Tables that the operator says are gone, each by the newest document that was met: what it says of holds stands,
    for a drop releases none.
    """

    now_ms: int
    newest: dict[str, tuple[int, State]] = field(default_factory=dict)

    def add(self, table: State, formats: Formats) -> None:
        written_ms = formats.of(table).written_ms(table)
        if written_ms >= self.newest.get(table.uuid, (written_ms, table))[0]:
            self.newest[table.uuid] = (written_ms, table)

    def refuse_held(self) -> None:
        """Raises CollectionForbidden where a hold is in force on one of them, or it forbade removals."""
        for _, table in self.newest.values():
            held = [hold.name for hold in table.holds if hold.in_force(self.now_ms)]
            reason = forbidden(table, self.now_ms) or (f"the hold {held[0]} is in force" if held else None)
            if reason is not None:
                raise CollectionForbidden(
                    f"nothing of the dropped table {table.uuid} may be removed now: {reason}",
                    hint=f"register {table.fence} again and lift that, if nobody needs it any more",
                )


def refuse_strangers(
    batches: Iterable[pa.RecordBatch],
    known: Known,
    forks: Forks,
    gone: Set[str],
    departed: Departed,
    formats: Formats,
) -> None:
    """Raises where metadata lies here of a table whose needs nobody counted. `gone` are tables, by their uuid, and
    documents that need nothing; `departed` sees what those tables last said.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in batches:
            rows = batch.select(["identity", "key", "modified_ms"]).to_pylist()
            said = pool.map(lambda row: _table_of(formats, row["key"]), rows)
            for row, table in zip(rows, said, strict=True):
                if table is None:
                    _refuse_unread(row, known)
                elif table.uuid not in gone:
                    _refuse_unknown(row["key"], table, known)
                    _refuse_elsewhere(row, table, known)
                    if row["identity"] not in gone:
                        _refuse_ahead(row, table, known, formats.of(table))
                    forks.add(row, table)
                elif row["identity"] not in gone:
                    departed.add(table, formats)
    departed.refuse_held()
    forks.refuse(gone)


def _table_of(formats: Formats, key: str) -> State | None:
    try:
        return formats.table_of(key)
    except FirnlineError as problem:
        raise RefusedForSafety(
            f"{key} looks like a table's metadata, and nobody can tell whose: {problem.message}", hint=_TORN
        ) from problem


def _refuse_unread(row: dict[str, Any], known: Known) -> None:
    """Raises where metadata was listed, is gone by now, and no known table keeps its metadata in that folder.

    In a known table's folder it is one that its writer cleaned up since.
    """
    if _folder(row["identity"]) not in known.everywhere:
        raise RefusedForSafety(
            f"{row['key']} looks like a table's metadata, and nobody can tell whose: it is gone by now",
            hint="search again; an inventory may be too old",
        )


def _refuse_unknown(key: str, table: State, known: Known) -> None:
    if table.uuid not in known.newest:
        raise RefusedForSafety(
            f"{key} is metadata of the table {table.uuid}, which no configured catalog has",
            hint=f"configure its catalog, or name it with --also LOCATION; --dropped {table.uuid} if it is gone",
        )


def _refuse_elsewhere(row: dict[str, Any], table: State, known: Known) -> None:
    """Raises where metadata of a known table lies in a folder that this table does not name: by a link, a mount or a
    copy its files lie here under names that no root reaches.
    """
    if _folder(row["identity"]) not in known.folders[table.uuid]:
        raise RefusedForSafety(
            f"{row['key']} is metadata of the table {table.uuid}, which has it in another place: "
            f"{', '.join(sorted(known.folders[table.uuid]))}",
            hint=f"--same THIS=THAT if both are one place; --dropped {table.uuid} if nobody needs what is here",
        )


def _refuse_ahead(row: dict[str, Any], table: State, known: Known, table_format: TableFormat) -> None:
    """Raises where a table's metadata is newer than every known one: another catalog went on with it.

    A commit that is on its way is young, and builds on metadata that is known.
    """
    if table_format.written_ms(table) <= known.newest[table.uuid]:
        return
    _, *log = table_format.metadata_files(table)
    builds_on_known = not log or known_as(log[-1], known.same) in known.files[table.uuid]
    is_young = row["modified_ms"] is not None and row["modified_ms"] >= known.cutoff_ms
    if not (is_young and builds_on_known):
        raise RefusedForSafety(
            f"{row['key']} is metadata of the table {table.uuid}, newer than what any configured catalog has of it",
            hint=f"configure the catalog that has it, or keep what it needs with --also {row['key']}; "
            f"--dropped {row['key']} if it was never committed",
        )


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
