"""Many files of a tier in one object, a bundle, and each of them taken out again by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from firnline.ports.catalogs import Still, always
from firnline.ports.copying import CopyJob, CopyMany
from firnline.ports.relocating import Relocate


class BundleJob(NamedTuple):
    """One bundle that shall be written. `target` is its key, a name that no other bundle ever has; `root` is the tier's
    root, and every member's `target` is the place below it that the file has in the tier.
    """

    target: str
    root: str
    members: tuple[CopyJob, ...]


class PackedFile(NamedTuple):
    """Where a file of a tier lies: `offset` is that of its first byte within the bundle. `checksum` is `sha256:HEX` of
    the file as the tier has it, `source_checksum` of what it was made from: the same, unless it was rewritten.
    """

    place: str
    size: int
    checksum: str
    bundle: str
    offset: int
    source_checksum: str


class BundleOutcome(NamedTuple):
    """What became of one bundle. `size` and `checksum` are those of the whole, as `Stored` takes them; `packed` names
    its members in order. `error` says why it failed: then nothing is packed.
    """

    target: str
    size: int = 0
    checksum: str = ""
    packed: tuple[PackedFile, ...] = ()
    error: str = ""


class Pack(Protocol):
    """Writes bundles that are seen to be whole. Picklable, so that it may run elsewhere."""

    def pack(self, jobs: Sequence[BundleJob], relocate: Relocate, still: Still = always) -> list[BundleOutcome]:
        """Returns one outcome per job, in order; never raises for a single one.

        Members of a kind that `relocate` rewrites are packed as rewritten, all others byte for byte. A member that is
        missing or has another size than its table says fails its bundle, and half a bundle is never seen under its
        name. A bundle that lies there already is taken for this one where it has the same bytes, and is never replaced.
        `still` is asked before each write, and raises if the sender may not any more.

        Raises StoreError where no request can succeed any more: the bucket or the credentials are gone.
        """
        ...

    def share(self, parts: int) -> Pack:
        """Returns the same for one of `parts` that work at once: each gets its part of the pace."""
        ...


class RepackJob(NamedTuple):
    """One bundle that shall be written of members of others; `target` and `root` as those of a BundleJob."""

    target: str
    root: str
    members: tuple[PackedFile, ...]


class Repack(Protocol):
    """Writes bundles of what lies in others."""

    def repack(self, jobs: Sequence[RepackJob], still: Still = always) -> list[BundleOutcome]:
        """Returns one outcome per job, as `Pack.pack` does. Every member is the one that was packed, byte for byte, and
        keeps the checksum of what it was made from.
        """
        ...


class PackMany(Protocol):
    """Writes a list of bundles at the engine's scale: threads here, or executors."""

    def pack_many(
        self, jobs: Sequence[BundleJob], pack: Pack, relocate: Relocate, still: Still = always
    ) -> list[BundleOutcome]:
        """Returns one outcome per job, in order. `still` is asked here, before anything is sent and as often as
        possible afterwards.
        """
        ...


class TransferMany(CopyMany, PackMany, Protocol):
    """Spreads whatever goes to another place over an engine."""


class FindPacked(Protocol):
    """Knows which files of a tier lie in bundles. Picklable."""

    def find(self, place: str) -> PackedFile | None:
        """Returns the bundle that the file is in, and its offset there; None if it is no member of a bundle."""
        ...


class GetPacked(Protocol):
    """Reads members of bundles, each by itself. Picklable."""

    def get(self, packed: PackedFile) -> bytes:
        """Returns the file's bytes. Raises StoreError where they are not those that were packed, ObjectFrozen where the
        bundle must be restored first, and ObjectNotFound where it is missing.
        """
        ...

    def share(self, parts: int) -> GetPacked:
        """Returns the same for one of `parts` that work at once: each gets its part of the pace."""
        ...
