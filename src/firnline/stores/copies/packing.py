"""Bundles: many files of a tier in one object, seen to be whole before they count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from firnline.errors import AlreadyExists, FirnlineError, Interrupted
from firnline.patience import Patience
from firnline.ports.catalogs import Still, always
from firnline.ports.packing import BundleJob, BundleOutcome, RepackJob
from firnline.ports.relocating import Relocate
from firnline.ports.stores import ObjectMeta
from firnline.stores.copies.bundles import Bundle, Bundling, Rebundling
from firnline.stores.copies.checksums import PART_BYTES, form_of, summed
from firnline.stores.copies.contents import Contents
from firnline.stores.copies.members import Members
from firnline.stores.copies.requests import one_by_one
from firnline.stores.copies.route import COPY_PATIENCE, Route, route
from firnline.stores.copies.targets import another_object, usual_form
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import Key, object_key
from firnline.stores.throttle import Throttle

Job = TypeVar("Job", BundleJob, RepackJob)


class ObjectPack:
    """Packs objects of one store into bundles of another, at the pace of both; a thread holds a few pieces of them.

    `source` and `target` are the settings of the two stores, by PyIceberg's names; `storage_class` is S3's. A pickled
    one has a pace of its own: `share` it.
    """

    def __init__(
        self,
        source: Mapping[str, str] | None = None,
        target: Mapping[str, str] | None = None,
        *,
        storage_class: str | None = None,
        source_throttle: Throttle | None = None,
        target_throttle: Throttle | None = None,
        patience: Patience = COPY_PATIENCE,
    ) -> None:
        self._route = route(source, target, storage_class, (source_throttle, target_throttle), patience)
        self._sources, self._targets = self._route.sources(), self._route.targets()
        self._there = Contents(self._targets.requests)

    def __reduce__(self) -> tuple[Any, ...]:
        return _packing, (self._route,)

    def share(self, parts: int) -> ObjectPack:
        return _packing(self._route.share(parts))

    def pack(self, jobs: Sequence[BundleJob], relocate: Relocate, still: Still = always) -> list[BundleOutcome]:
        return one_by_one(jobs, partial(self._outcome, Bundling(self._sources, relocate).bundle), still)

    def repack(self, jobs: Sequence[RepackJob], still: Still = always) -> list[BundleOutcome]:
        return one_by_one(jobs, partial(self._outcome, Rebundling(Members(self._sources)).bundle), still)

    def _outcome(self, made: Callable[[Job], Bundle], job: Job, still: Still) -> BundleOutcome:
        try:
            bundle = made(job)
            checksum = self._written(bundle, object_key(job.target), still)
        except (*HOPELESS, Interrupted):
            raise
        except FirnlineError as error:
            return BundleOutcome(job.target, error=str(error))
        return BundleOutcome(job.target, bundle.size, checksum, bundle.packed())

    def _written(self, bundle: Bundle, target: Key, still: Still) -> str:
        """Returns the checksum of a bundle that lies there, written here or before. Looks first: a task that is run
        again finds what it wrote, and must not send it again.
        """
        found = self._targets.requests.there(target)
        if found is None:
            try:
                return self._targets.write(bundle.opened(), target, still)
            except AlreadyExists:  # a task that was run twice; or this very write, whose answer got lost
                found = self._targets.after_all(target)
        return self._same(bundle, target, found)

    def _same(self, bundle: Bundle, target: Key, found: ObjectMeta) -> str:
        """Returns the checksum of what lies there. Raises StoreError unless its bytes are those of the members.

        Only the members are read where the store tells a checksum: one of an archive class cannot be read.
        """
        if found.size != bundle.size:
            raise another_object(target, f"it has {found.size:,} bytes, and the bundle {bundle.size:,}")
        claimed = self._there.claimed(target, found)
        form = usual_form(target) if claimed is None else form_of(claimed)
        checksum = summed(bundle.pieces(PART_BYTES), form)
        if checksum != claimed and checksum != self._there.settled(target, form):
            raise another_object(target, "its bytes are not those of its members")
        return checksum


def _packing(route: Route) -> ObjectPack:
    return ObjectPack(**route.named())
