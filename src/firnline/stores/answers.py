"""What a store says of one delete."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firnline.errors import BadCredentials, ExpiredCredentials, NoSuchBucket
from firnline.ports.delete import Fate

HOPELESS = (NoSuchBucket, BadCredentials, ExpiredCredentials)
"""No further delete can succeed after these."""
_NOT_FOR_XML = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the store said of one key. `again`: it may work later; `slow`: it asked for fewer requests."""

    fate: Fate
    error: str = ""
    again: bool = False
    slow: bool = False


UNSENT = Answer(Fate.FAILED, "nothing was sent")


def fits_in_bulk(name: str) -> bool:
    """Tells whether a name survives XML: control characters do not, and must be deleted one by one."""
    return name.isprintable() or _NOT_FOR_XML.search(name) is None
