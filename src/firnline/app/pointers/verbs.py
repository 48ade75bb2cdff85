"""Pointers of the lake's tables: published, repaired, and resolved without a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from firnline.app.catalogs import absolute
from firnline.app.naming import Table, tables_meant
from firnline.errors import FirnlineError, RefusedForSafety
from firnline.model.snapshots import MAIN
from firnline.model.times import format_instant
from firnline.ops.pointers.keeping import PointerKeeper
from firnline.ops.pointers.policy import PointerPolicy, PointerStatus
from firnline.ops.pointers.truth import Behind, behind
from firnline.pointers.resolving import ResolvedPointer, Wanted, resolve, table_folder
from firnline.policy.inherit import effective
from firnline.ports.catalogs import TableName

if TYPE_CHECKING:
    from firnline.app.places import Places
    from firnline.app.pointers.watch import PointerWatch
    from firnline.ports.formats import State


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """What became of the pointers of one table, or of a catalog that cannot be read; or why nothing did."""

    table: str
    pointers: tuple[PointerStatus, ...] = ()
    problem: FirnlineError | None = None

    @property
    def problems(self) -> tuple[FirnlineError, ...]:
        """Of the table as a whole, and of each pointer."""
        own = (each.problem for each in self.pointers)
        return tuple(each for each in (self.problem, *own) if each is not None)

    def to_json(self) -> dict[str, Any]:
        told = {"table": self.table, "pointers": [_facts(each) for each in self.pointers]}
        return told if self.problem is None else {**told, "error": self.problem.to_json()}


@dataclass(frozen=True, slots=True)
class OpenedPath:
    """A table found without its catalog: its metadata, by which pointer, and how old that is. `behind` is how far the
    pointer is behind its catalog, where that can be asked; None where it cannot, or where it is not behind.
    """

    found: ResolvedPointer
    state: State = field(repr=False)
    age_ms: int
    catalog: str | None = None
    behind: Behind | None = None

    @property
    def metadata(self) -> str:
        return self.found.pointer.metadata_file_path

    def to_json(self) -> dict[str, Any]:
        pointer = self.found.pointer
        return {
            "metadata": self.metadata,
            "pointer": self.found.key,
            "followed": list(self.found.followed),
            "table": pointer.table_identifier,
            "uuid": pointer.guid,
            "branch": pointer.branch,
            "ordinal": pointer.ordinal,
            "age_ms": self.age_ms,
            "catalog": self.catalog,
            "behind": None if self.behind is None else _behind_facts(self.behind),
        }


@dataclass(frozen=True, slots=True)
class LakePointers:
    """The pointers of every table."""

    places: Places

    def policy(self, name: TableName) -> PointerPolicy:
        """Returns what firnline.yaml says of a table's pointers."""
        return PointerPolicy.of(effective(self.places.config, name.catalog, name.namespace, name.name))

    def sync(self, tables: Iterable[Table] | None = None, *, take_over: bool = False) -> list[SyncedTable]:
        """Returns the pointers of tables, brought to what their catalogs say: of names and patterns, or of every table
        of which a policy speaks. Those that are to have none lose theirs in the time that links have. `take_over`
        replaces those that were published from another catalog. Neither a table that fails nor a catalog stops the
        others.
        """
        chosen = self.places.catalogs.chosen(None if tables is None else tables_meant(tables)).unless_alone()
        if tables is None:
            meant = [each for each in chosen.tables if self._is_spoken_of(each)]
        else:
            meant = [each for each in chosen.tables if each.catalog]
        done = [self.sync_one(each, take_over) for each in meant]
        failed = {**chosen.missing, **chosen.unread}
        return [*done, *(SyncedTable(name, problem=problem) for name, problem in failed.items())]

    def _is_spoken_of(self, name: TableName) -> bool:
        """Tells whether a policy speaks of the table's pointers; also if nobody can tell: then that is its problem."""
        return self._policy_says(name, lambda policy: policy.is_said)

    def is_wanted(self, name: TableName) -> bool:
        """Tells whether a policy asks for pointers of the table; also if nobody can tell."""
        return self._policy_says(name, lambda policy: policy.is_on)

    def _policy_says(self, name: TableName, says: Callable[[PointerPolicy], bool]) -> bool:
        try:
            return says(self.policy(name))
        except FirnlineError:
            return True

    def watch(self) -> PointerWatch:
        """Returns what publishes whatever moved on since its last look at the configured catalogs."""
        from firnline.app.pointers.watch import PointerWatch

        return PointerWatch(self)

    def sync_one(self, name: TableName, take_over: bool = False) -> SyncedTable:
        """Returns the pointers of a table, and of whatever it was called before, as its catalog says."""
        return self._done(name, lambda keeper: keeper.sync(), take_over)

    def publish_one(self, name: TableName) -> SyncedTable:
        """Returns the pointers of a table, moved on; the rest of its folder is not looked at."""
        return self._done(name, lambda keeper: keeper.publish())

    def publish(self, name: TableName) -> list[PointerStatus]:
        """Returns the pointers of a table, moved on to what its catalog says; none where no policy asks for them."""
        policy = self.policy(name)
        return self._keeper(name, policy).publish() if policy.is_on else []

    def open_path(
        self,
        path: str,
        *,
        table: str | None = None,
        uuid: str | None = None,
        branch: str = MAIN,
        allow_outside: bool = False,
    ) -> OpenedPath:
        """Returns the table in a folder by its pointer, without any catalog: where its metadata is, and how old.

        Raises NoSuchTable, UsageError where several may be meant, and RefusedForSafety where the metadata lies outside
        of the folder or is another table's.
        """
        where = absolute(path)
        store = self.places.stores.reading(table_folder(where))
        found = resolve(store, where, Wanted(table, uuid.lower() if uuid else None, branch), outside=allow_outside)
        pointer = found.pointer
        source = self.places.source(pointer.metadata_file_path)
        state = source.format.load(pointer.metadata_file_path, pointer.metadata_file_path)
        if state.uuid != pointer.guid:
            raise RefusedForSafety(
                f"{found.key} names the metadata of the table {state.uuid}, and says that it is {pointer.guid}",
                hint="`firnline pointers sync` writes what the catalog says",
            )
        catalog, late = self._behind(found)
        return OpenedPath(found, state, found.age_ms(self.places.clock()), catalog, late)

    def _behind(self, found: ResolvedPointer) -> tuple[str | None, Behind | None]:
        """Returns the catalog that a pointer was published from, if it can be asked, and how far it is behind. One that
        does not answer is none: a reader does without.
        """
        pointer = found.pointer
        for catalog in self.places.catalogs.configured if pointer.published_by else ():
            name = TableName.of_parts(catalog, pointer.parts)
            try:
                if self.places.catalogs.address_of(name) == pointer.published_by:
                    source = self.places.source(name)
                    return catalog, behind(source.format, source.load(), pointer)
            except FirnlineError:
                continue
        return None, None

    def _done(
        self, name: TableName, act: Callable[[PointerKeeper], list[PointerStatus]], take_over: bool = False
    ) -> SyncedTable:
        try:
            found = act(self._keeper(name, self.policy(name), take_over))
        except FirnlineError as problem:
            return SyncedTable(str(name), problem=problem)
        return SyncedTable(str(name), tuple(found))

    def _keeper(self, name: TableName, policy: PointerPolicy, take_over: bool = False) -> PointerKeeper:
        work = self.places.table_context(name)
        retire = self.places.stores.retire(name, work.store)
        return PointerKeeper(work, policy, retire, partial(self._uuid_of, name.catalog), take_over)

    def _uuid_of(self, catalog: str, parts: tuple[str, ...]) -> str:
        return self.places.source(TableName.of_parts(catalog, parts)).load().uuid


def _facts(status: PointerStatus) -> dict[str, Any]:
    told = status.was_behind
    return {
        "pointer": status.key,
        "outcome": status.outcome,
        "branch": status.branch,
        "metadata": status.metadata,
        "ordinal": status.ordinal,
        "was_behind": None if told is None else _behind_facts(told),
        **({} if status.problem is None else {"error": status.problem.to_json()}),
    }


def _behind_facts(told: Behind) -> dict[str, Any]:
    return {"commits": told.commits, "since": format_instant(told.since_ms)}
