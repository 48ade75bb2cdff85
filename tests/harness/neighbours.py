"""Neighbours that come up while firnline works: tables that need files of the world's table, between any two steps.

Each step makes one, complete in itself, from what is whole at that moment: a table that is made of files of which some
are gone already was never readable, and nobody loses it. From then on all of it must stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

from firnline.errors import RefusedForSafety, TakenUpAgain, UnreadableMetadata
from firnline.model.times import DAY_MS
from firnline.testing.faults import Acting
from harness.operations import Operation, operations
from harness.pointers import CATALOG, Pointers
from harness.processes import Process
from harness.world import World
from harness.writers import Document, Writer

SECOND = "second"
"""The name of the other catalog."""

STOPS = (RefusedForSafety, TakenUpAgain, UnreadableMetadata)
"""How an operation may end because of a neighbour."""

_OPERATIONS = ("expire --grace 0s", "commit", "purge", "undo", "undo before commit", "resume after commit")


@dataclass
class Neighbourhood:
    """A world with what its neighbours are made of: `born` is its metadata when every snapshot was in the table."""

    world: World
    born: str
    strays: list[str] = field(default_factory=list)

    @staticmethod
    def of(world: World) -> Neighbourhood:
        """Returns the world with a second catalog, which is empty, and a few files that no table names."""
        second = Pointers(world.folder / "second.db", SECOND)
        second.create()
        world.side_objects.append(second)
        born = world.writer.place()
        now = world.clock.ahead_ms
        world.clock.ahead_ms = -10 * DAY_MS
        strays = [world.writer.data_file().path for _ in range(3)]
        world.clock.ahead_ms = now
        return Neighbourhood(world, born, strays)

    # ---- what comes up

    def registered(self) -> bool:
        """`register_table` of a backup: another name for the table as it once was."""
        self.world.pointers.register("backup", self._whole_metadata())
        return True

    def imported(self) -> bool:
        """`add_files`: another table takes in data files of this one that its main does not hold."""
        held = {item.path for item in self.world.writer.live()}
        mine = self.world.writer.location + "/"
        items = [
            item for path, item in self.world.writer.ledger.items.items()
            if not item.content and path not in held and path.startswith(mine) and self.world.ground.disk.exists(path)
        ]  # fmt: skip
        other = self._writer("importer")
        other.create()
        other.commit("append", [other.data_file(), *items])
        return bool(items)

    def cloned(self) -> bool:
        """A clone: the metadata under a name, a uuid and a folder of its own, with every file of the original."""
        document = self._document(self._whole_metadata())
        clone = self._writer("clone")
        document |= {"table-uuid": str(uuid4()), "location": clone.location, "metadata-log": []}
        self._register_copy(document, clone)
        return True

    def copied(self) -> bool:
        """A copied folder: its metadata still names the files of the folder that it was copied from."""
        chosen = self._whole_metadata()
        mine, copy = self.world.writer.location, f"{self.world.ground.root}/copied"
        disk = self.world.ground.disk
        for path in list(disk.under(mine)):
            if "/_firnline/" not in path:
                disk.write(path.replace(mine, copy, 1), disk.read(path), disk.modified_ms(path))
        self.world.pointers.register("copied", chosen.replace(mine, copy, 1))
        return True

    def in_a_second_catalog(self) -> bool:
        """Another configured catalog has the table, too, as it once was."""
        self.world.side_objects[0].register("there", self._whole_metadata())
        return True

    # ---- made of what

    def _whole_metadata(self) -> str:
        """Returns the metadata of the world's beginning as long as all that it names is there, else that of now."""
        return self.born if self._is_whole(self.born) else self.world.writer.place()

    def _is_whole(self, place: str) -> bool:
        disk = self.world.ground.disk
        if not disk.exists(place):
            return False
        document = self._document(place)
        truths = (self.world.writer.ledger.truths[each["snapshot-id"]] for each in document["snapshots"])
        named = {path for truth in truths for path in truth.files}
        return all(map(disk.exists, named | {each["statistics-path"] for each in document["statistics"]}))

    def _document(self, place: str) -> Document:
        return self.world.writer.document_at(place)

    def _writer(self, name: str) -> Writer:
        world = self.world
        place = f"{world.ground.root}/{name}"
        return Writer(place, world.pointers, name, world.clock, world.writer.ledger, world.ground.disk)

    def _register_copy(self, document: Document, clone: Writer) -> None:
        place = f"{clone.location}/metadata/00000-{uuid4()}.metadata.json"
        self.world.ground.disk.write(place, json.dumps(document).encode(), self.world.clock())
        self.world.pointers.register(clone.name, place)


STEPS: dict[str, Callable[[Neighbourhood], bool]] = {
    "register_table": Neighbourhood.registered,
    "add_files": Neighbourhood.imported,
    "clone": Neighbourhood.cloned,
    "copied folder": Neighbourhood.copied,
    "second catalog": Neighbourhood.in_a_second_catalog,
}


def searches() -> Operation:
    """Returns the search for orphans, which are purged at once."""

    def search(process: Process, world: World) -> None:
        process.orphans(world.table, grace="0s", consent=lambda plan: True, blast_radius=1.0)

    return Operation("orphans", search, lambda process, world: process.resume(world.table))


def side_objects() -> dict[str, Operation]:
    """Returns the operations that a neighbour may come up in, by name."""
    known = {each.name: each for each in operations()}
    return {name: known[name] for name in _OPERATIONS} | {"orphans": searches()}


@dataclass
class Coming(Acting):
    """Somebody makes a neighbour just before the n-th request. Blind is what goes before its catalog is listed again:
    no store can tell a delete to wait for a registration.
    """

    catalog: str = CATALOG

    def _watch(self, verb: str, key: str) -> None:
        if self.before is not None:
            self._looked = self._looked or (verb in ("pointers", "tables") and key == self.catalog)
            if verb == "delete" and not self._looked:
                self.blind.append(key)


def neighbour_comes(operation: Operation, step: str, at: int, world: World) -> None:
    """Runs the operation with the step before its n-th request, then brings it to an end, or as far as it may go.

    Raises AssertionError, naming the place, if a snapshot of any table of any catalog lost a file or a row. The
    operation may refuse to go on, because of a neighbour that the policy does not name. What it deleted before it could
    know of the neighbour must be told: a file is named, and `firnline check` lists all.
    """
    around = Neighbourhood.of(world)
    operation.ready(world)
    where = SECOND if step == "second catalog" else CATALOG
    coming, told = Coming(at, lambda: STEPS[step](around), catalog=where), ""
    try:
        operation.act(world.process(coming), world)
    except STOPS as stopped:
        told = str(stopped)
    assert coming.before is not None, "the operation ended before anybody came"
    where = f"{operation.name}: {step} before request {at}, {coming.before}"
    blind = frozenset(coming.blind)
    judge(world, blind, where)
    lost = [path for path in blind if world.problems(blind - {path})]
    assert not lost or any(path in told for path in lost), f"{where}: lost in silence: {lost}, but: {told}"
    for go_on in (operation.again, lambda process, world: process.resume(world.table)):
        world.wait_for_lease()
        with suppress(*STOPS):
            go_on(world.process(), world)
        judge(world, blind, f"{where}, then again")


def judge(world: World, blind: Iterable[str], where: str) -> None:
    problems = world.problems(frozenset(blind))
    assert not problems, "\n".join([where, *problems])
