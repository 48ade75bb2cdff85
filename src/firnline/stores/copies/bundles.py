"""A bundle before it is written: where each member will lie, and its bytes as they are read.

Its size is known before the first byte is sent, since S3 must be told in how large parts an object comes. So what is
rewritten on the way is made first; what of it is more than a thread may hold is dropped, and made again in its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from firnline.errors import PermanentStoreError, StoreError
from firnline.model.files import FileKind
from firnline.ports.copying import CopyJob
from firnline.ports.packing import BundleJob, PackedFile, RepackJob
from firnline.ports.relocating import Relocate
from firnline.ports.stores import ObjectMeta
from firnline.stores.copies.checksums import PART_BYTES, SHA256, GrowingChecksum, summed, summing
from firnline.stores.copies.contents import Contents, Opened, refuse_other_size
from firnline.stores.copies.members import Members
from firnline.stores.copies.tars import END, cut, header, name_below, padding
from firnline.stores.keys import object_key
from firnline.stores.local import Piece

HELD_BYTES = 2 * PART_BYTES
"""Of rewritten members, that a thread holds at once."""


class _Member(NamedTuple):
    place: str
    size: int
    header: bytes
    pieces: Callable[[], Iterable[Piece]]
    source_checksum: str | None
    """Of what was rewritten; None where the member is its source's bytes."""


class Bundle:
    """One bundle, whose bytes can be read from its members' sources as often as they are asked for."""

    def __init__(self, key: str, members: list[_Member]) -> None:
        self.key = key
        self._members = members
        self._sums: list[str] = []
        each = (len(member.header) + member.size + len(padding(member.size)) for member in members)
        self.size = sum(each) + len(END)

    def opened(self) -> Opened:
        return Opened(ObjectMeta(self.key, self.size, None, None), self.pieces)

    def pieces(self, size: int) -> Iterator[bytes]:
        return cut(self._stream(), size)

    def packed(self) -> tuple[PackedFile, ...]:
        """Returns the offset, size and checksum of each member. Only after all pieces were read: no checksum is known
        before.
        """
        found, at = [], 0
        for member, checksum in zip(self._members, self._sums, strict=True):
            at += len(member.header)
            source = member.source_checksum or checksum
            found.append(PackedFile(member.place, member.size, checksum, self.key, at, source))
            at += member.size + len(padding(member.size))
        return tuple(found)

    def _stream(self) -> Iterator[Piece]:
        self._sums = []
        for member in self._members:
            total = summing(SHA256)
            yield member.header
            yield from _measured(member, total)
            self._sums.append(total.checksum())
            yield padding(member.size)
        yield END


def _measured(member: _Member, total: GrowingChecksum) -> Iterator[Piece]:
    """Yields a member's bytes. Raises StoreError where they are not as many as its header says: all that follows would
    lie elsewhere.
    """
    left = member.size
    for piece in member.pieces():
        left -= len(piece)
        total.update(piece)
        yield piece
    if left:
        raise StoreError(f"{member.place!r} came with {member.size - left:,} bytes, and {member.size:,} were announced")


@dataclass
class Bundling:
    """Makes bundles of what lies in one store."""

    sources: Contents
    relocate: Relocate

    def bundle(self, job: BundleJob) -> Bundle:
        """Returns a bundle whose members' sizes are known: those that tables do not say are asked for. Raises
        FirnlineError where a member cannot be packed.
        """
        members, held = [], 0
        for each in job.members:
            object_key(each.target)
            name = name_below(job.root, each.target)
            if _kind(each) in self.relocate.rewritten:
                data, checksum = self._rewritten(each)
                is_held = held + len(data) <= HELD_BYTES
                held += len(data) if is_held else 0
                pieces = partial(_whole, data) if is_held else partial(self._made_again, each)
                members.append(_Member(each.target, len(data), header(name, len(data)), pieces, checksum))
            else:
                members.append(self._plain(each, name))
        return Bundle(job.target, members)

    def _plain(self, job: CopyJob, name: str) -> _Member:
        size = self.sources.requests.head(object_key(job.source)).size if job.size is None else job.size
        return _Member(job.target, size, header(name, size), partial(self._as_it_is, job, size), None)

    def _as_it_is(self, job: CopyJob, size: int) -> Iterator[Piece]:
        opened = self.sources.open(object_key(job.source), size)
        refuse_other_size(opened.meta, size)
        yield from opened.pieces(PART_BYTES)

    def _rewritten(self, job: CopyJob) -> tuple[bytes, str]:
        """Returns a file as the tier has it, and the checksum of what it was made from."""
        opened = self.sources.open(object_key(job.source), job.size)
        refuse_other_size(opened.meta, job.size)
        data = b"".join(opened.pieces(PART_BYTES))
        return self.relocate.relocated(_kind(job), job.source, data), summed((data,), SHA256)

    def _made_again(self, job: CopyJob) -> Iterator[Piece]:
        yield self._rewritten(job)[0]


@dataclass
class Rebundling:
    """Makes bundles of members of others."""

    members: Members

    def bundle(self, job: RepackJob) -> Bundle:
        """Returns the bundle. A member that is not what was packed is told when its bytes are read."""
        return Bundle(job.target, [self._member(each, name_below(job.root, each.place)) for each in job.members])

    def _member(self, packed: PackedFile, name: str) -> _Member:
        pieces = partial(self._pieces, packed)
        return _Member(packed.place, packed.size, header(name, packed.size), pieces, packed.source_checksum)

    def _pieces(self, packed: PackedFile) -> Iterator[Piece]:
        return self.members.open(packed).pieces(PART_BYTES)


def _whole(data: bytes) -> Iterable[Piece]:
    return (data,)


def _kind(job: CopyJob) -> FileKind:
    try:
        return FileKind(job.kind)
    except ValueError as error:
        raise PermanentStoreError(f"{job.source!r} is of no known kind: {job.kind!r}") from error
