"""The form of a bundle: a tar file, which every system unpacks without firnline. Pure.

Every member has its header, its bytes and zeros up to the next block; two blocks of zeros end the whole. Headers hold
neither a time nor an owner, so equal members give equal bytes.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator

from firnline.errors import PermanentStoreError
from firnline.stores.local import Piece

BLOCK = 512
END = bytes(2 * BLOCK)


def header(name: str, size: int) -> bytes:
    """Returns what stands before a member's bytes: one block, more where its name is long or not ASCII."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    """Returns what stands after a member's bytes."""
    return bytes(-size % BLOCK)


def name_below(root: str, place: str) -> str:
    """Returns what a file is called in a bundle that is unpacked at the root. Raises PermanentStoreError for a file
    that lies elsewhere.
    """
    folder = root.rstrip("/") + "/"
    name = place.removeprefix(folder)
    if name == place or not name:
        raise PermanentStoreError(f"{place!r} does not lie below {root!r}")
    return f".{name}" if name.startswith("/") else name  # a name from the root of the machine would leave the folder


def cut(stream: Iterable[Piece], size: int) -> Iterator[bytes]:
    """Yields the same bytes in pieces of one size; the last may be smaller."""
    held: list[memoryview] = []
    wanted = size
    for piece in stream:
        rest = memoryview(piece)
        while len(rest) >= wanted:
            yield b"".join((*held, rest[:wanted]))
            rest, held, wanted = rest[wanted:], [], size
        if rest:
            held.append(rest)
            wanted -= len(rest)
    if held:
        yield b"".join(held)
