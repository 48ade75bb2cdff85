"""Every format that firnline knows, by its kit: those that come with it, and those of other packages.

Another package has its kit found by an entry point of the group `firnline.formats`, whose name is the format's. Nothing
of a kit is imported before the formats are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from firnline.errors import UnsupportedFormat, UsageError
from firnline.formats.strangers import STRANGE_NAMES, refuse_stranger
from firnline.model.files import FileKind
from firnline.model.snapshots import SnapshotId
from firnline.ports.catalogs import Commit
from firnline.ports.expanding import Expand
from firnline.ports.formats import State, TableFormat
from firnline.ports.kits import GROUP, Committing, CommittingByLibrary, Kit, Mirroring, Retiring
from firnline.ports.stores import Read, ReadWrite

if TYPE_CHECKING:
    from firnline.ports.retire import Retire

_BUILT_IN = {name: f"firnline.formats.{name}.kit" for name in ("paimon", "icechunk", "iceberg")}
"""In the order of asking. Iceberg's is asked last: writers of other formats keep its metadata over their own files."""


@cache
def kits() -> tuple[Kit, ...]:
    """Returns all kits, those of other packages first. Raises UsageError where one of these cannot be used: a table of
    its format would look like garbage, or like another format's table.
    """
    own = [import_module(module).KIT for module in _BUILT_IN.values()]
    return (*_of_other_packages(), *own)


def _of_other_packages() -> Iterator[Kit]:
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        if point.name in _BUILT_IN:
            raise UsageError(f"{point.value} claims to be the format {point.name}", hint="remove that package")
        try:
            kit: Kit = point.load()
        except Exception as problem:  # what another package raises is its own affair
            raise UsageError(
                f"the format {point.name} cannot be loaded from {point.value}: {type(problem).__name__}: {problem}",
                hint="repair or remove that package; without it, its tables' files would look like nobody's",
            ) from problem
        yield kit


def kit_named(name: str) -> Kit:
    """Returns the kit of a format. Raises UnsupportedFormat where there is none of that name."""
    found = next((each for each in kits() if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in kits())
        raise UnsupportedFormat(f"tables of the format {name} cannot be read", hint=f"known are: {known}")
    return found


def kit_at(store: Read, location: str) -> Kit:
    """Returns the kit of the table in a folder. The last one is not asked: if there is no table at all, the first read
    says so.
    """
    *others, last = kits()
    return next((each for each in others if each.has_table(store, location)), last)


def kit_of_document(key: str) -> Kit | None:
    """Returns the kit by whose names this is a metadata object; None where it is one of no known format."""
    named = (each for each in kits() for expression in each.documents if re.search(f"/(?:{expression})$", key))
    return next(named, None)


def document_names() -> tuple[tuple[str, FileKind], ...]:
    """Returns what the metadata of any table is called, also of formats that are not known: it is noticed wherever it
    lies, so that a search stops before such a table's data is taken for garbage.
    """
    known = ((expression, FileKind.METADATA) for each in kits() for expression in each.documents)
    return (*known, *STRANGE_NAMES)


def commits_of(
    kit: Kit, store: ReadWrite, retire: Callable[[], Retire], settings: Mapping[str, str], location: str
) -> Commit:
    """Returns the write side of the table in a folder. The port that takes metadata away is made only for a kit that
    has `retiring_commits`. Raises UnsupportedFormat where nothing can be committed.
    """
    if isinstance(kit, CommittingByLibrary):
        return kit.library_commits(store, settings, location)
    if isinstance(kit, Retiring):
        return kit.retiring_commits(store, retire(), location)
    if isinstance(kit, Committing):
        return kit.commits(store, location)
    raise UnsupportedFormat(f"nothing is committed to the {kit.name} table in {location}", hint="plans work")


def original_of(mirror: Kit, store: Read, location: str, metadata: Iterable[str]) -> str | None:
    """Returns the location if a table of another format than the mirror's lies there, whose writers keep the mirror."""
    others = [each for each in kits() if each is not mirror and isinstance(each, Mirroring)]
    written = list(metadata) if others else []
    return location if any(each.is_original(store, location, written) for each in others) else None


@dataclass(frozen=True, slots=True)
class EveryFormat:
    """All formats on one store, behind the port `Formats`."""

    store: Read
    trusted: frozenset[SnapshotId] = frozenset()
    _opened: dict[str, TableFormat] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def expand(self) -> Expand:
        return self._format(kits()[-1]).expand

    def of(self, state: State) -> TableFormat:
        return self._format(kit_named(state.format))

    def table_of(self, document: str) -> State | None:
        return self._format(_known(document)).table_of(document)

    def dropped_table(self, document: str) -> State | None:
        kit = _known(document)
        if kit.known_by_folder:
            raise UnsupportedFormat(
                f"{document} is of the format {kit.name}, whose tables are in no catalog: one is there as "
                "long as its folder is, and never counts as dropped",
                hint="a search for orphans that is told of it, by --also LOCATION, keeps what it needs",
            )
        return self._format(kit).table_of(document)

    def folder_of(self, document: str) -> str:
        kit = kit_of_document(document)
        return document.rpartition("/")[0].rpartition("/")[0] if kit is None else kit.table_folder(document)

    def _format(self, kit: Kit) -> TableFormat:
        if kit.name not in self._opened:
            self._opened[kit.name] = kit.format(self.store, self.trusted)
        return self._opened[kit.name]


def _known(document: str) -> Kit:
    kit = kit_of_document(document)
    if kit is None:
        refuse_stranger(document)
        raise UnsupportedFormat(f"{document} belongs to a table of an unknown format", hint="nothing was changed")
    return kit
