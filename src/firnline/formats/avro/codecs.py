"""Which packages expand blocks: the fast ones where all of them are installed, else what everybody has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from firnline.formats.avro import plain
from firnline.formats.avro.engine import Way


@dataclass(frozen=True, slots=True)
class Codecs:
    """Each expands all blocks of a file at once, and raises one of `errors` or CorruptAvro."""

    by_name: Mapping[str, Callable[[list[bytes], int], list[Any]]]
    errors: Any


PLAIN: Final = Codecs(plain.CODECS, plain.ERRORS)


def codecs_for(way: Way) -> Codecs:
    """The plain ones where plain Python was asked for, so that nothing else is needed there; else the best."""
    return PLAIN if way == "python" else best()


@functools.cache
def best() -> Codecs:
    """The fast ones. The plain ones where a package is missing, as on executors that came without it."""
    try:
        from firnline.formats.avro import fast
    except ImportError:
        return PLAIN
    return Codecs(fast.CODECS, fast.ERRORS)
