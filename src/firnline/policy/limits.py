"""What a store may be asked for at most, place by place, as firnline.yaml says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from firnline.errors import PolicyError
from firnline.model.locations import identity, is_dotted, parse_location, stem_of
from firnline.policy.policy import Setting

SCHEMES = ("file", "memory", "s3", "gs", "abfs", "az")
"""Of the stores that can be reached, each in the spelling that stands for its others."""

MOST_AT_ONCE = 256
LARGEST_BATCH = 1_000
"""What S3 takes in one request."""

_WHOLE = re.compile(r"[0-9]{1,9}")
_FASTEST = 1_000_000


def _count(most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
            raise PolicyError(f"{text[:64]!r} is not allowed")
        return int(text)

    return parse


def _up_to(most: int) -> str:
    return f"a whole number from 1 to {most:,}"


LIMITS: dict[str, tuple[Callable[[str], int], str]] = {
    "reads-per-second": (_count(_FASTEST), _up_to(_FASTEST)),
    "reads-at-once": (_count(MOST_AT_ONCE), _up_to(MOST_AT_ONCE)),
    "deletes-per-second": (_count(_FASTEST), _up_to(_FASTEST)),
    "deletes-at-once": (_count(MOST_AT_ONCE), _up_to(MOST_AT_ONCE)),
    "writes-per-second": (_count(_FASTEST), _up_to(_FASTEST)),
    "writes-at-once": (_count(MOST_AT_ONCE), _up_to(MOST_AT_ONCE)),
    "delete-batch": (_count(LARGEST_BATCH), _up_to(LARGEST_BATCH)),
}
"""The keys of a store, each with its parser and what it takes."""


def parse_limit(name: str, text: str, where: str) -> int:
    """Returns the limit that a text means. `where` begins every error."""
    parse, allowed = LIMITS[name]
    try:
        return parse(text)
    except PolicyError as error:
        raise PolicyError(f"{where}: {error.message}", hint=f"{name} takes {allowed}") from None


def parse_place(text: str, where: str) -> str:
    """Returns the place that a text names, as what the names of all that lies there begin with. Raises PolicyError for
    one in which nothing can lie: its limit would protect no store.
    """
    scheme, authority, _ = parse_location(text)
    if scheme not in SCHEMES:
        raise PolicyError(f"{where}: no store for {scheme}:// is known", hint=f"known are {', '.join(SCHEMES)}")
    if is_dotted(text) or (scheme == "file" and not (text.startswith("/") or "://" in text)):
        raise PolicyError(f"{where}: {text!r} is not a full location", hint="write it from the root on")
    if scheme != "file" and not authority:
        raise PolicyError(f"{where}: {text!r} names no bucket", hint="such as s3://lake, or a folder of one")
    return stem_of(text)


class Limit(NamedTuple):
    """A limit, and the place for which it is written: all that lies there shares it."""

    value: float
    place: str


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What was said of each place, the most specific first."""

    places: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()

    @staticmethod
    def of(stores: Mapping[str, Mapping[str, Setting[int]]]) -> StoreLimits:
        """Returns the limits of a file, whose places are named as `parse_place` returns them."""
        said = [(place, tuple((name, each.value) for name, each in found.items())) for place, found in stores.items()]
        return StoreLimits(tuple(sorted(said, key=lambda each: (-len(each[0]), each[0]))))

    def limit(self, name: str, location: str) -> Limit | None:
        """Returns the limit of that name for a location: from the most specific place that has it, alone."""
        within = identity(location).rstrip("/") + "/"
        for place, said in self.places:
            value = dict(said).get(name)
            if value is not None and within.startswith(place):
                return Limit(value, place)
        return None

    def at_once(self, verb: str, location: str) -> int | None:
        """Returns how many `reads`, `deletes` or `writes` may be under way at a location; None: nothing was said."""
        found = self.limit(f"{verb}-at-once", location)
        return None if found is None else int(found.value)


def limits_in_words(said: Mapping[str, Setting[int]]) -> str:
    """Returns what was said of a place, with the line of each."""
    return ", ".join(f"{name} {each.value:,} (line {each.source.line})" for name, each in said.items()) or "no limit"
