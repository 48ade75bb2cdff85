"""Which folders are whose. A folder inside another table's folder belongs to the inner table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from firnline.errors import PermanentStoreError
from firnline.model.locations import stem_of
from firnline.ports.formats import State, TableFormat


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one table, each as what the identities of its files begin with.

    `owned` are its location and what its properties name; `written` are those that its writers put files into.
    """

    owned: tuple[str, ...]
    written: tuple[str, ...]

    @staticmethod
    def of(state: State, table_format: TableFormat, real: Callable[[str], str]) -> Folders:
        """Returns the folders as `real` says where they are."""
        owned = dict.fromkeys(real(stem_of(folder)) for folder in state.owned)
        written = dict.fromkeys(real(stem_of(place.folder)) for place in table_format.places(state))
        return Folders(tuple(owned), tuple(written))

    @property
    def every(self) -> frozenset[str]:
        return frozenset((*self.owned, *self.written))

    def are_where_they_were(self, real: Callable[[str], str]) -> bool:
        """Tells whether no link leads away from where the folders were.

        1. A table is walked: it needs nothing outside its own folders.
        2. One of these is moved into another table's, and a link is left behind. No metadata changes.
        3. The other table takes a file of it in, and expires it.

        What may not be seen any more counts as moved: who reads the table again says so.
        """
        try:
            return all(real(folder) == folder for folder in self.every)
        except PermanentStoreError:
            return False


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """What counts as a table's own: what begins with one of `folders` and with none of `holes`."""

    folders: tuple[str, ...]
    holes: tuple[str, ...]

    def has(self, identity: str) -> bool:
        return identity.startswith(self.folders) and not identity.startswith(self.holes)


class FolderMap:
    """The folders of many tables, sorted: what lies in a folder is found without looking at every other one."""

    def __init__(self, tables: Iterable[tuple[int, Folders]]) -> None:
        every = list(tables)
        self._owned = sorted((folder, number) for number, each in every for folder in each.owned)
        self._users: dict[str, list[int]] = {}
        for number, each in every:
            for folder in each.every:
                self._users.setdefault(folder, []).append(number)

    def holes(self, number: int, folders: Folders) -> tuple[str, ...]:
        """Returns the folders of other tables that lie inside those of this one, without those inside each other."""
        inside = {hole for folder in folders.owned for hole in self._inside(number, folder)}
        return tuple(_outermost(inside.difference(folders.owned)))

    def foreign(self, number: int, folders: Folders) -> tuple[str, ...]:
        """Returns the holes of this table, and all folders of others elsewhere but for those that its own lie in."""
        others = {
            folder
            for folder, owner in self._owned
            if owner != number and not any(own.startswith(folder) for own in folders.owned)
        }
        return tuple(_outermost(others.union(self.holes(number, folders))))

    def sharers(self, number: int, folders: Folders) -> Iterator[tuple[int, str]]:
        """Yields the other tables that use one of the same folders, each with that folder."""
        for folder in sorted(folders.every):
            yield from ((other, folder) for other in self._users.get(folder, ()) if other != number)

    def _inside(self, number: int, folder: str) -> Iterator[str]:
        for at in range(bisect_left(self._owned, (folder, -1)), len(self._owned)):
            inner, owner = self._owned[at]
            if not inner.startswith(folder):
                return
            if owner != number and inner != folder:
                yield inner


def _outermost(folders: Iterable[str]) -> Iterator[str]:
    """Yields the folders, sorted and without those that lie in another one of them."""
    last = None
    for folder in sorted(folders):
        if last is None or not folder.startswith(last):
            last = folder
            yield folder
