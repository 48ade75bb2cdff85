"""Files of a tier written somewhere else: out of their bundles, or plainly where they lie by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firnline.errors import AlreadyExists, ObjectChanged, StoreError
from firnline.patience import Patience
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import CopyFate, CopyJob, CopyOutcome
from firnline.ports.packing import FindPacked, PackedFile
from firnline.ports.stores import ObjectMeta, shared
from firnline.stores.copies.checksums import PART_BYTES, form_of, summing
from firnline.stores.copies.contents import Contents
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.members import Members
from firnline.stores.copies.requests import one_by_one
from firnline.stores.copies.route import COPY_PATIENCE, Route, route
from firnline.stores.copies.targets import another_object, usual_form
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import Key, object_key
from firnline.stores.throttle import Throttle


class ObjectUnpack:
    """Copies files of a tier as `Copy` does, and reads those that `packed` knows from their bundles: just their bytes,
    and nothing of a member that is not what was packed gets a name at the target.
    """

    def __init__(
        self,
        packed: FindPacked,
        source: Mapping[str, str] | None = None,
        target: Mapping[str, str] | None = None,
        *,
        storage_class: str | None = None,
        source_throttle: Throttle | None = None,
        target_throttle: Throttle | None = None,
        patience: Patience = COPY_PATIENCE,
    ) -> None:
        self._packed = packed
        self._route = route(source, target, storage_class, (source_throttle, target_throttle), patience)
        self._plain = ObjectCopy(**self._route.named())
        self._members, self._targets = Members(self._route.sources()), self._route.targets()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacking, (self._packed, self._route)

    def share(self, parts: int) -> ObjectUnpack:
        return _unpacking(shared(self._packed, parts), self._route.share(parts))

    def copy(self, jobs: Sequence[CopyJob], still: Still = always) -> list[CopyOutcome]:
        return one_by_one(jobs, self._outcome, still)

    def _outcome(self, job: CopyJob, still: Still) -> CopyOutcome:
        try:
            packed = self._packed.find(job.source)
            if packed is not None:
                return self._one(job, packed, object_key(job.target), still)
        except HOPELESS:
            raise
        except StoreError as error:
            return CopyOutcome(job.target, CopyFate.FAILED, error=str(error))
        return self._plain.copy((job,), still)[0]

    def _one(self, job: CopyJob, packed: PackedFile, target: Key, still: Still) -> CopyOutcome:
        if job.size not in (None, packed.size):
            raise ObjectChanged(
                f"{job.source!r} has {packed.size:,} bytes in its bundle, and its table says {job.size:,}"
            )
        found = self._targets.requests.there(target)
        if found is None:
            try:
                checksum = self._targets.write(self._members.open(packed), target, still)
                return CopyOutcome(job.target, CopyFate.COPIED, packed.size, checksum)
            except AlreadyExists:  # another writer was quicker; or this very write, whose answer got lost
                found = self._targets.after_all(target)
        return CopyOutcome(job.target, CopyFate.PRESENT, packed.size, self._same(packed, target, found))

    def _same(self, packed: PackedFile, target: Key, found: ObjectMeta) -> str:
        """Returns the checksum of what lies there, as its store tells it. Raises StoreError unless it is what was
        packed, which only its bytes tell: stores know no sha256.
        """
        if found.size != packed.size:
            raise another_object(target, f"it has {found.size:,} bytes, and what was packed {packed.size:,}")
        there = Contents(self._targets.requests)
        claimed = there.claimed(target, found)
        told = summing(usual_form(target) if claimed is None else form_of(claimed))
        proof = summing(form_of(packed.checksum))
        for piece in there.opened(target, found).pieces(PART_BYTES):
            told.update(piece)
            proof.update(piece)
        if proof.checksum() != packed.checksum:
            raise another_object(target, "its bytes are not those that were packed")
        return told.checksum()


def _unpacking(packed: FindPacked, route: Route) -> ObjectUnpack:
    return ObjectUnpack(packed, **route.named())
