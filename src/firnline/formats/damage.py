"""What is wrong with a metadata object, told with its name. Never part of an answer: a file that a damaged object hid
would look like garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata, UnsupportedFormat

REPAIR = "nothing was changed; without it nobody can tell which files are needed"


class Damaged(ValueError):
    """The bytes contradict the format, or what another object says of them. Nothing decoded from them may be used."""

    told: ClassVar[str] = "is damaged"


class NotUnderstood(ValueError):
    """The bytes may be sound: they use something that this version does not understand. They are not to be used."""


@contextmanager
def named(kind: str, key: str) -> Iterator[None]:
    """Raises every trouble with the object with its name."""
    try:
        yield
    except ObjectNotFound as missing:
        raise UnreadableMetadata(f"{kind} is missing: {key}", hint=REPAIR) from missing
    except NotUnderstood as strange:
        raise UnsupportedFormat(f"{kind} is not understood: {key}: {strange}", hint=REPAIR) from strange
    except Damaged as damage:
        raise UnreadableMetadata(f"{kind} {damage.told}: {key}: {damage}", hint=REPAIR) from damage
    except MemoryError:
        raise UnreadableMetadata(f"{kind} does not fit into memory: {key}", hint=REPAIR) from None
    except FirnlineError as known:
        raise type(known)(f"{kind} {key}: {known.message}", known.flags) from known
