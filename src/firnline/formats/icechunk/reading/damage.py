"""What is wrong with an object, told with its name. Never part of an answer: a chunk that a damaged object hid would
look like garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firnline.errors import ObjectNotFound, UnreadableMetadata, UnsupportedFormat

REPAIR = "nothing was changed; without it nobody can tell which objects are needed"


class CorruptIcechunk(ValueError):
    """The bytes contradict the format, or what another object says of them."""


class UnsupportedIcechunk(ValueError):
    """The bytes may be sound: they use something that this version does not understand."""


@contextmanager
def named(kind: str, key: str) -> Iterator[None]:
    """Raises every trouble with the object with its name."""
    try:
        yield
    except ObjectNotFound as missing:
        raise UnreadableMetadata(f"{kind} is missing: {key}", hint=REPAIR) from missing
    except UnsupportedIcechunk as strange:
        raise UnsupportedFormat(f"{kind} is not understood: {key}: {strange}", hint=REPAIR) from strange
    except CorruptIcechunk as damage:
        raise UnreadableMetadata(f"{kind} is damaged: {key}: {damage}", hint=REPAIR) from damage
    except MemoryError:
        raise UnreadableMetadata(f"{kind} does not fit into memory: {key}", hint=REPAIR) from None
