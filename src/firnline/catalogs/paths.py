"""Tables known by their path alone: the file system is the catalog.

Such a table's name is its location: `TableName.at(location)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

from firnline.catalogs.commits import is_in_log, proof_of, version_between
from firnline.catalogs.versions import (
    HINT,
    Gap,
    counted_version,
    current_name,
    is_metadata_file,
    passed_names,
    version_hinted,
)
from firnline.errors import (
    AlreadyExists,
    NoSuchTable,
    ObjectNotFound,
    OutcomeUnknown,
    RefusedForSafety,
    StoreError,
    UnreadableMetadata,
)
from firnline.model.locations import identity, join, parse_location
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment, UndoWindow
from firnline.ports.stores import Read, ReadWrite

_EXCLUSIVE = ("file", "memory")
_PLAIN, _GZIP, _OLD_GZIP = ".metadata.json", ".gz.metadata.json", ".metadata.json.gz"


def locate_path_table(location: str, store: Read) -> str:
    """Returns the location of the current metadata file of the table in this folder, or of the file it names.

    Raises NoSuchTable where the folder holds no metadata, UnreadableMetadata where two files may be meant.
    """
    if is_metadata_file(location):
        return location
    try:
        return _look(location, store)
    except Gap:
        # A folder is not read in one instant: two commits during the read can show the second without the first.
        return _look(location, store)


def _look(location: str, store: Read) -> str:
    hint = _hint(location, store)  # before the listing, which then holds at least what the hint says
    try:
        name = current_name(store.names(join(location, "metadata")), hint)
    except UnreadableMetadata as error:
        raise type(error)(f"{location}: {error.message}", error.flags) from error
    if name is None:
        raise NoSuchTable(f"no Iceberg table at {location}", "a table's folder has a folder `metadata` in it")
    return join(location, "metadata", name)


def _hint(location: str, store: Read) -> str | None:
    try:
        return store.get(join(location, "metadata", HINT)).decode("ascii", "replace")
    except ObjectNotFound:
        return None


class PathTables:
    """The read side. Paths cannot be enumerated, so `tables` is empty."""

    def __init__(self, store: Read) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return ""

    @property
    def format(self) -> str:
        return "iceberg"

    @property
    def undo(self) -> UndoWindow:
        return UndoWindow.AFTER_COMMIT

    def tables(self) -> Iterator[TableName]:
        return iter(())

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        return ((table, None) for table in self.tables())

    def locate(self, table: TableName) -> str:
        return locate_path_table(table.name, self._store)

    def vended(self, table: TableName) -> Mapping[str, str]:
        return {}

    def passed(self, table: TableName, current: str) -> Iterator[str]:
        """Yields the metadata that a reader opens on its way from the hint to the current version.

        Iceberg's Java fails on a hint at a version that is not there, however many newer ones are; and the table's own
        log, if it is short, does not reach back to it.
        """
        version = counted_version(current.rpartition("/")[2])
        hinted = (
            None if version is None or is_metadata_file(table.name) else version_hinted(_hint(table.name, self._store))
        )
        if version is not None and hinted is not None and hinted < version:
            names = passed_names(self._store.names(join(table.name, "metadata")), hinted, version)
            yield from (join(table.name, "metadata", name) for name in names)


class PathCommits:
    """The write side: the next version's name is the lock, and who creates that file has committed."""

    def __init__(self, store: ReadWrite) -> None:
        self._store = store

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the step as the version after its base; of the suggestion only its compression counts.

        Raises RefusedForSafety where no commit is safe: on object stores, and for a table that a catalog wrote.
        """
        suffix = _GZIP if step.suggested.endswith((_GZIP, _OLD_GZIP)) else _PLAIN
        new = _version_file(table.name, _next_version(table.name, step.base.location), suffix)
        return Attempt(table, step, proof_of(step.base.location, new, step.data))

    def commit(self, attempt: Attempt) -> SwapOutcome:
        """Writes the data as the version after the base.

        UNKNOWN also means that the same version appeared under the name of another compression meanwhile.
        """
        folder, base, new = attempt.table.name, attempt.proof["base"], attempt.proof["location"]
        version = _next_version(folder, base)
        names = {_version_file(folder, version, each) for each in (_PLAIN, _GZIP, _OLD_GZIP)}
        if identity(locate_path_table(folder, self._store)) != identity(base):
            return SwapOutcome.LOST
        outcome = self._create(new, names - {new}, attempt.step.data)
        if outcome is SwapOutcome.DONE:
            self._leave_hint(folder, version)
        return outcome

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        """Tells it by the log. The hint is written after the version, so one who died in between left it behind."""
        if not is_in_log(self._store, proof, now):
            return False
        still()
        self._put_hint_right(now.location)
        return True

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        return version_between(proofs, now)

    def _create(self, new: str, others: Set[str], data: bytes) -> SwapOutcome:
        if self._any(others):
            return SwapOutcome.LOST
        try:
            self._store.put_if_absent(new, data)
            return SwapOutcome.UNKNOWN if self._any(others) else SwapOutcome.DONE
        except AlreadyExists:
            return SwapOutcome.LOST
        except (StoreError, OutcomeUnknown):
            return SwapOutcome.UNKNOWN

    def _any(self, keys: Set[str]) -> bool:
        return any(self._exists(key) for key in keys)

    def _exists(self, key: str) -> bool:
        try:
            self._store.head(key)
        except ObjectNotFound:
            return False
        return True

    def _put_hint_right(self, current: str) -> None:
        folder, _, name = current.rpartition("/metadata/")
        version = counted_version(name)
        if version is not None and (version_hinted(_hint(folder, self._store)) or 0) < version:
            self._leave_hint(folder, version)

    def _leave_hint(self, location: str, version: int) -> None:
        with suppress(StoreError):  # readers walk on from an older hint, or from none
            self._store.put(join(location, "metadata", HINT), b"%d" % version)


def _version_file(location: str, version: int, suffix: str) -> str:
    return join(location, "metadata", f"v{version}{suffix}")


def _next_version(location: str, base: str) -> int:
    """Returns the number of the version after `base`. Raises RefusedForSafety where it cannot be committed safely."""
    if is_metadata_file(location):
        raise RefusedForSafety(f"{location} is a metadata file, which has no pointer to move", "name the folder")
    if (scheme := parse_location(location).scheme) not in _EXCLUSIVE:
        raise RefusedForSafety(
            f"a path table on {scheme}:// has no safe commit: Iceberg's own rename there overwrites what another "
            "writer has just committed",
            "register the table in a catalog",
        )
    version = counted_version(base.rpartition("/")[2])
    if version is None:
        raise RefusedForSafety(f"{base} was written through a catalog", "name the table by its catalog")
    return version + 1
