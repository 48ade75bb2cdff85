"""Where a search looks, and whose files may go there: a table's folders, or a folder with several tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from firnline.model.locations import identity, within
from firnline.ops.orphans.folder import FolderFormat, no_table
from firnline.ops.orphans.neighbours import Neighbour, outermost, overlap
from firnline.ops.reachability.live_roots import forbidden
from firnline.ops.table.sources import nothing_passed
from firnline.ports.catalogs import Commit, TableName
from firnline.ports.formats import Formats, State
from firnline.ports.listings import WrittenFolder


@dataclass(frozen=True, slots=True)
class Prefix:
    """The folder behind the port of a table. Nothing can be committed to it."""

    location: str
    formats: Formats

    @property
    def name(self) -> TableName:
        return TableName.at(self.location)

    @property
    def format(self) -> FolderFormat:
        return FolderFormat(self.formats)

    @property
    def commits(self) -> Commit:
        raise no_table(self.location)

    @property
    def passed(self) -> Callable[[str], Iterable[str]]:
        return nothing_passed

    def load(self) -> State:
        return self.format.load(self.location, self.location)


@dataclass(frozen=True, slots=True)
class Scope:
    """The folders that are listed, and the table they belong to; None where a whole prefix is searched.

    `departed` is a dropped table's last state: its files may go because nobody has the table any more.
    """

    folders: tuple[str, ...]
    uuid: str | None = None
    departed: State | None = None

    @staticmethod
    def of_table(state: State, include_outside: bool) -> Scope:
        """Returns the table's own location; its folders elsewhere only by the operator's word.

        A data path outside the location is often one that several tables write to, also those of other catalogs.
        """
        return Scope(outermost(state.owned) if include_outside else (state.location,), state.uuid)

    def left_out(self, state: State) -> tuple[str, ...]:
        """Returns the folders of a table that are not searched."""
        return tuple(each for each in state.owned if not any(overlap(folder, each) for folder in self.folders))

    def insiders(self, neighbours: Sequence[Neighbour], now_ms: int) -> list[Neighbour]:
        """Returns the tables whose files are searched. One that forbids removals is none, under a prefix; where a
        dropped table is purged, nobody else's garbage goes with it.
        """
        if self.departed is not None:
            return []
        if self.uuid is not None:
            return [each for each in neighbours if each.state.uuid == self.uuid]
        return [each for each in neighbours if self._touches(each) and forbidden(each.state, now_ms) is None]

    def _touches(self, each: Neighbour) -> bool:
        return any(overlap(place.folder, folder) for place in each.places for folder in self.folders)

    def places(self, insiders: Sequence[Neighbour], departed: tuple[WrittenFolder, ...]) -> tuple[WrittenFolder, ...]:
        """Returns the folders from which files may go, each once, and those around them that the tables own."""
        used = (*departed, *(place for each in insiders for place in each.places))
        states = [each.state for each in insiders] + ([] if self.departed is None else [self.departed])
        owned = (WrittenFolder(folder, ()) for state in states for folder in state.owned)
        return tuple({(identity(place.folder), place.names): place for place in (*used, *owned)}.values())

    def foreign(
        self,
        neighbours: Sequence[Neighbour],
        insiders: Sequence[Neighbour],
        places: Sequence[WrittenFolder],
        now_ms: int,
    ) -> tuple[str, ...]:
        """Returns the folders of other tables inside the search: what lies there is theirs to judge.

        A folder that holds one of the searched places is shared, not foreign: there the other table's needs count,
        and only what neither table needs may go.
        """
        inside = {id(each) for each in insiders}
        others = (folder for each in neighbours if id(each) not in inside for folder in each.state.owned)
        nested = {each for each in others if self._is_nested(each, places)}
        return tuple(sorted(nested | set(self._held(neighbours, places, now_ms))))

    def _held(self, neighbours: Sequence[Neighbour], places: Sequence[WrittenFolder], now_ms: int) -> Iterator[str]:
        """Yields the writers' folders of tables that forbid removals: also one that a searched table shares, but none
        that only has the searched one's own folder in it.
        """
        mine = {identity(place.folder).rstrip("/") for place in places if place.names}
        around = {parent for folder in mine for parent in _parents(folder)}
        held = (each for each in neighbours if forbidden(each.state, now_ms) is not None)
        for place in (place for each in held for place in each.places):
            folder = identity(place.folder).rstrip("/")
            if folder in mine or folder not in around:
                yield place.folder

    def _is_nested(self, folder: str, places: Sequence[WrittenFolder]) -> bool:
        within_search = any(overlap(mine, folder) and not within(folder, mine) for mine in self.folders)
        holds_a_place = any(
            within(folder, place.folder) or identity(folder).rstrip("/") == identity(place.folder).rstrip("/")
            for place in places
            if place.names
        )
        return within_search and not holds_a_place


def _parents(folder: str) -> Iterator[str]:
    """Yields every folder that a folder lies in."""
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        yield folder
