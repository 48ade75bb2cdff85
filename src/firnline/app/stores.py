"""With what each table's store is reached, what that store really does, and who removes objects from it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from firnline.app.catalogs import Catalogs, absolute
from firnline.extras import require
from firnline.foreign import Veil
from firnline.formats.registry import kit_named
from firnline.journal.layout import FOLDER
from firnline.model.locations import join, within
from firnline.ops.table.context import TableContext, refuse_unfit
from firnline.policy.parse import Section
from firnline.ports.cache import REDIS
from firnline.ports.catalogs import TableName, TableSource, always
from firnline.settings import cache_setting, store_limits

if TYPE_CHECKING:
    from firnline.app.checkpoints import StoredCheckpoints
    from firnline.ports.copying import Copy, Verify
    from firnline.ports.delete import Delete, RemoveEmpty
    from firnline.ports.discard import Discard
    from firnline.ports.formats import State
    from firnline.ports.packing import FindPacked, GetPacked
    from firnline.ports.probe import Probe, StoreVerdicts
    from firnline.ports.retire import Retire
    from firnline.ports.stores import Budget, Read, ReadWrite
    from firnline.ports.thawing import Thaw
    from firnline.stores.copies.packing import ObjectPack
    from firnline.stores.ranges import ObjectRanges
    from firnline.stores.throttle import Throttle

_OF_STORES = ("s3.", "client.", "gcs.", "adls.")


@dataclass(frozen=True, slots=True)
class Pacing:
    """As what part of all that stores take a process works, and what is passed before each read: it raises where none
    may be sent any more. `reads`: what a store takes in a second of which nothing was said; None for its usual rate.
    """

    part: float = 1.0
    gate: Callable[[], None] = always
    reads: float | None = None


MOST_OPEN = 64


class LastUsed:
    """The stores that were used last, one for equal settings. Who works with another one still has it.

    1. A catalog hands out credentials of their own for each table, and others with each look at it.
    2. A purge looks at every table of the lake before each batch: a night of that opens more stores than memory holds.
    """

    def __init__(self) -> None:
        self._stores: OrderedDict[frozenset[tuple[str, str]], ReadWrite] = OrderedDict()
        self._finding = Lock()

    def __len__(self) -> int:
        return len(self._stores)

    def get(self, settings: Mapping[str, str], new: Callable[[], ReadWrite]) -> ReadWrite:
        """Returns the store behind some settings; `new` makes one, outside of the lock: it may ask the network."""
        key = frozenset(settings.items())
        with self._finding:
            if key in self._stores:
                self._stores.move_to_end(key)
                return self._stores[key]
        made = new()
        with self._finding:
            found = self._stores.setdefault(key, made)
            while len(self._stores) > MOST_OPEN:
                self._stores.popitem(last=False)
        return found


@dataclass
class Stores:
    """Opens every table's store by its own catalog's settings, and probes it once before a run works there."""

    config: Section = field(repr=False)
    catalogs: Catalogs
    pacing: Pacing = field(default_factory=Pacing)
    _opened: LastUsed = field(default_factory=LastUsed, init=False, repr=False)
    _reached: LastUsed = field(default_factory=LastUsed, init=False, repr=False)
    _throttles: dict[str, Throttle] = field(default_factory=dict, init=False, repr=False)
    _probed: dict[tuple[str, str], dict[str, StoreVerdicts]] = field(default_factory=dict, init=False, repr=False)

    def settings_of(self, name: TableName) -> Mapping[str, str]:
        """Returns how the table's store is reached, by PyIceberg's names; what a catalog hands out for a table wins.

        A location without a catalog is reached as the catalog whose warehouse holds it, or as the only one; the rest
        is the environment's.
        """
        if name.catalog:
            vended = self.catalogs.open(name.catalog).vended(name)
            return store_settings({**self.catalogs.settings(name.catalog).properties, **vended})
        configured = self.catalogs.configured.values()
        holding = [each for each in configured if _holds(each.properties, name.name)]
        chosen = holding or list(configured)
        return store_settings(chosen[0].properties) if len(chosen) == 1 else {}

    def open(self, settings: Mapping[str, str]) -> ReadWrite:
        """Returns the store behind some settings, one for equal ones. It asks again where that can help."""
        from firnline.stores.wrappers.paced import Paced
        from firnline.stores.wrappers.retry import Retrying

        return self._opened.get(settings, lambda: Retrying(Paced(self._unpaced(settings), self._throttle(settings))))

    def prompt(self, settings: Mapping[str, str]) -> ReadWrite:
        """Returns the same store for a lease, which asks little, and waits behind no other: a renewal that stands in
        the line of a purge's own reads would come when the lease has run out.
        """
        from firnline.stores.wrappers.paced import Paced
        from firnline.stores.wrappers.retry import Retrying

        return Retrying(Paced(self._unpaced(settings), self._throttle(settings), waits=False))

    def _unpaced(self, settings: Mapping[str, str]) -> ReadWrite:
        from firnline.stores.objects import ObjectStores

        def new() -> ReadWrite:
            refuse_silent_store(settings)
            return ObjectStores(settings)

        return self._reached.get(settings, new)

    def measure(self, name: TableName, folder: str) -> float | None:
        """Returns how many reads a second the store of a table answers; None where its folder has no object."""
        from firnline.stores.probe import reads_per_second

        return reads_per_second(self._unpaced(self.settings_of(name)), folder)

    def reading(self, location: str) -> Read:
        return read_only(self.open(self.settings_of(TableName.at(location))))

    def folders(self, location: str) -> Callable[[str], list[str]]:
        """Returns what lists the folders that are directly in one."""
        return self.ranges(self.settings_of(TableName.at(location))).folders

    def checkpoints(self, name: TableName) -> StoredCheckpoints:
        """Returns what reads the checkpoints of a table's readers, by its catalog's settings: what a catalog hands out
        for a table opens that table's folder alone.
        """

        def settings() -> Mapping[str, str]:
            own = self.catalogs.settings(name.catalog).properties if name.catalog else None
            return self.settings_of(name) if own is None else store_settings(own)

        from firnline.app.checkpoints import StoredCheckpoints

        return StoredCheckpoints(lambda: read_only(self.open(settings())), lambda: self.ranges(settings()))

    def ranges(self, settings: Mapping[str, str]) -> ObjectRanges:
        """Returns what lists the store behind some settings in pieces."""
        from firnline.stores.ranges import ObjectRanges

        return ObjectRanges(settings, self._throttle(settings))

    def probe(self, name: TableName) -> Probe:
        from firnline.stores.probe import StoreProbe

        settings = self.settings_of(name)
        return StoreProbe(settings, throttle=self._throttle(settings))

    def check(self, location: str) -> StoreVerdicts:
        """Returns what the store at a location really does. Writes a few objects of its own and removes them again."""
        named = absolute(location)
        return self.probe(TableName.at(named)).probe(join(named, FOLDER), [named], replaces=True)

    def prepare(self, work: TableContext, state: State, *, deletes: bool) -> None:
        """Raises unless the table's store can carry a run, asked once: no permission is missed only after a commit.

        Once for each catalog: another one's server may have the same bucket and the same folders.
        """
        root = work.root(state)
        known = self._probed.setdefault((work.source.name.catalog, root), {})
        if state.location not in known:
            touched = list(dict.fromkeys((*state.owned, *_inside(work.source, state))))
            known[state.location] = self.probe(work.source.name).probe(root, touched)
        refuse_unfit(known[state.location], deletes=deletes)

    def warnings(self, name: TableName, location: str) -> tuple[str, ...]:
        return self.probe(name).surroundings(location).warnings()

    def retire(self, name: TableName, store: ReadWrite) -> Retire:
        from firnline.stores.removers import ObjectRetire

        settings = self.settings_of(name)
        return ObjectRetire(store, settings, self._throttle(settings))

    def discard(self, settings: Mapping[str, str]) -> Discard:
        from firnline.stores.removers import OwnDiscard

        return OwnDiscard(settings, self._throttle(settings))

    def remove_empty(self) -> RemoveEmpty:
        from firnline.stores.removers import LocalFolders

        return LocalFolders()

    def delete(self, name: TableName, root: str) -> Delete:
        """Returns what deletes a table's objects, each only as it was listed where every probe at `root` saw that the
        store honours such a condition.
        """
        from firnline.stores.delete import ObjectDelete

        probed = tuple(self._probed.get((name.catalog, root), {}).values())  # a copy: another thread may probe now
        honoured = bool(probed) and all(bool(found.if_match_delete) for found in probed)
        settings = self.settings_of(name)
        return ObjectDelete(settings, throttle=self._throttle(settings), conditional=honoured)

    def copying(
        self,
        source: Mapping[str, str],
        target: Mapping[str, str],
        storage_class: str | None = None,
        *,
        packed: FindPacked | None = None,
    ) -> Copy:
        """Returns what copies objects from the store behind some settings to that behind others; those that lie in
        bundles there by what `packed` knows of them.
        """
        from firnline.stores.copies.copying import ObjectCopy
        from firnline.stores.copies.unpacking import ObjectUnpack

        paces = self._throttle(source), self._throttle(target)
        if packed is not None:
            return ObjectUnpack(packed, source, target, source_throttle=paces[0], target_throttle=paces[1])
        return ObjectCopy(
            source, target, storage_class=storage_class, source_throttle=paces[0], target_throttle=paces[1]
        )

    def packing(self, source: Mapping[str, str], target: Mapping[str, str], storage_class: str | None) -> ObjectPack:
        """Returns what packs objects of the store behind some settings into bundles in that behind others."""
        from firnline.stores.copies.packing import ObjectPack

        paces = self._throttle(source), self._throttle(target)
        return ObjectPack(
            source, target, storage_class=storage_class, source_throttle=paces[0], target_throttle=paces[1]
        )

    def members(self, settings: Mapping[str, str]) -> GetPacked:
        """Returns what reads members of bundles in the store behind some settings."""
        from firnline.stores.copies.members import ObjectMembers

        return ObjectMembers(settings, throttle=self._throttle(settings))

    def thawing(self, settings: Mapping[str, str]) -> Thaw:
        """Returns what makes objects of archive classes readable in the store behind some settings."""
        from firnline.stores.copies.thawing import ObjectThaw

        return ObjectThaw(settings, throttle=self._throttle(settings))

    def verifying(self, settings: Mapping[str, str]) -> Verify:
        """Returns what looks at copies again that lie in the store behind some settings."""
        from firnline.stores.copies.verifying import ObjectVerify

        return ObjectVerify(settings, throttle=self._throttle(settings))

    def _throttle(self, settings: Mapping[str, str]) -> Throttle:
        """Returns what paces all that is asked of a store, one for each address: tables that are worked on side by side
        together ask no more of it than one would, also those that a catalog hands out credentials of their own for.
        """
        from firnline.stores.throttle import Lanes, Throttle, usual_rates

        address = settings.get("s3.endpoint", "")
        if address not in self._throttles:
            lanes = Lanes(store_limits(self.config), usual_rates(self.pacing.reads))
            self._throttles.setdefault(address, Throttle(lanes, self._budget(), gate=self.pacing.gate))
        return self._throttles[address]

    def _budget(self) -> Budget:
        """Returns the budget that all processes share, where Redis is configured; else one's own."""
        from firnline.stores.throttle import LocalBudget

        own, (setting, _) = LocalBudget(self.pacing.part), cache_setting(self.config)
        if not setting.startswith(REDIS):
            return own
        require("redis", "a budget in Redis")
        from firnline.caches.budget import RedisBudget

        return RedisBudget(setting, own, part=self.pacing.part)


def read_only(store: ReadWrite) -> Read:
    """Returns the store without any verb that changes it: all that formats and kits get, but for a commit."""
    from firnline.stores.wrappers.read_only import ReadOnly

    return ReadOnly(store)


def store_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns what of a catalog's properties is about stores: its own secrets stay with the catalog."""
    return {name: value for name, value in properties.items() if name.startswith(_OF_STORES)}


def _holds(properties: Mapping[str, str], location: str) -> bool:
    warehouse = properties.get("warehouse", "")
    return "/" in warehouse and within(warehouse, join(location, "x"))


def _inside(source: TableSource, state: State) -> Iterator[str]:
    """Yields the folders of a table in which a run deletes; of a folder with several tables none is known."""
    from firnline.ops.orphans.scope import Prefix

    names = () if isinstance(source, Prefix) else kit_named(state.format).folders
    return map(partial(join, state.location), names)


def refuse_silent_store(settings: Mapping[str, str]) -> None:
    """Raises Unreachable where the store that settings lead to accepts connections and then says nothing in time."""
    from firnline.answering import refuse_silent

    endpoint = settings.get("s3.endpoint")
    if endpoint and not settings.get("s3.proxy-uri"):
        refuse_silent(endpoint, f"the store at {Veil().over(endpoint)}")
