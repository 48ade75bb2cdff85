"""Sizes as people write them: 256MiB, 1TiB."""

from __future__ import annotations

import re

from firnline.errors import PolicyError

_SIZE = re.compile(r"([1-9][0-9]{0,5})(KiB|MiB|GiB|TiB)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def parse_size(text: str) -> int:
    """Returns the bytes that a text means. Raises PolicyError for any other text."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise PolicyError(f"{text[:64]!r} is not a size")
    return int(found[1]) * _UNITS[found[2]]
