"""The tiers of a firnline.yaml: where history is handed to, in which class, and how much of it.

tiers:
  cold:                       # the name of a catalog, in which its tables are found
    root: s3://cold/keep      # its files lie below, each under the path that it has in the live store
    class: GLACIER_IR
    thin: daily
  deep:
    root: s3://deep/keep
    class: DEEP_ARCHIVE       # has to be restored before it is read
    bundle: 1GiB              # so much of many files is one object
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from firnline.errors import PolicyError
from firnline.model.snapshots import Snapshot, SnapshotId
from firnline.policy.limits import parse_place
from firnline.policy.periods import Period, newest_of_each
from firnline.policy.policy import Setting
from firnline.policy.sizes import parse_size
from firnline.policy.values import OFF

_CLASS = re.compile(r"[A-Z][A-Z_]{1,30}")
_BUNDLE_BOUNDS = range(1 << 20, (1 << 40) + 1)
_ASLEEP = ("GLACIER", "DEEP_ARCHIVE")
"""Classes whose objects have to be restored before they are read."""
USUAL_BUNDLE = 256 << 20
LIVE = "live"
"""What the live table is called among its tiers."""


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """What the operator says of one tier. `thin`: of each such period the newest snapshot alone is handed over.
    `bundle`: so many bytes of many files are one object there; None: each file is one, and can be read as it is.
    """

    name: str
    root: str
    storage_class: str | None = None
    thin: Period | None = None
    bundle: int | None = None

    def chosen(self, expired: Set[SnapshotId], known: Iterable[Snapshot], tagged: Set[SnapshotId]) -> set[SnapshotId]:
        """Returns those of the expired snapshots that are handed over. `known` are all that the table and the tier
        have: the newest of a day is not known before the day's last snapshot is. What a tag names is always handed
        over.
        """
        if self.thin is None:
            return set(expired)
        by_time = sorted(known, key=lambda each: (each.timestamp_ms, each.id), reverse=True)
        newest = {each.id for each in newest_of_each(self.thin, by_time)}
        return {each for each in expired if each in newest or each in tagged}


def _root(text: str, where: str) -> str:
    parse_place(text, where)
    return text.rstrip("/")


def _class(text: str, where: str) -> str:
    if not _CLASS.fullmatch(text):
        raise PolicyError(f"{where}: {text[:64]!r} is no storage class", hint="such as GLACIER_IR or STANDARD_IA")
    return text


def _bundle(text: str, where: str) -> int:
    hint = "such as 256MiB, up to 1024GiB"
    try:
        size = parse_size(text)
    except PolicyError as error:
        raise PolicyError(f"{where}: {error.message}", hint=hint) from None
    if size not in _BUNDLE_BOUNDS:
        raise PolicyError(f"{where}: {text[:64]!r} is no size of a bundle", hint=hint)
    return size


def _thin(text: str, where: str) -> Period | None:
    if text == OFF:
        return None
    try:
        return Period(text)
    except ValueError:
        allowed = ", ".join(each.value for each in Period)
        raise PolicyError(f"{where}: {text[:64]!r} is no period", hint=f"one of {allowed}, or off") from None


TIER_KEYS: dict[str, Callable[[str, str], Any]] = {"root": _root, "class": _class, "thin": _thin, "bundle": _bundle}
"""The keys of a tier, each with its parser, which gets where the text stands too."""


def parse_of_tier(key: str, text: str | list[str], where: str) -> Any:
    """Returns what a key of a tier says. Raises PolicyError with `where` it stands."""
    if not isinstance(text, str):
        raise PolicyError(f"{where}: a list is not allowed here")
    return TIER_KEYS[key](text, where)


def tier_named(tiers: Mapping[str, Mapping[str, Setting[Any]]], name: str) -> TierPolicy:
    """Returns a tier of the file. Raises PolicyError where it has none of that name, or that one has no root."""
    said = tiers.get(name)
    if said is None:
        known = ", ".join(tiers) or "none"
        raise PolicyError(f"no tier is named {name!r}", hint=f"`tiers:` of firnline.yaml names them; it has: {known}")
    if name == LIVE:
        raise PolicyError(f"a tier cannot be named {LIVE!r}: that is what the table itself is called", hint="rename it")
    if name != name.lower():
        raise PolicyError(f"the tier {name!r} has a capital", hint="PyIceberg knows catalogs by small letters")
    if "root" not in said:
        raise PolicyError(f"the tier {name!r} has no root", hint="`root:` says where its files lie, such as s3://cold")
    values = {key: setting.value for key, setting in said.items()}
    storage_class = values.get("class")
    bundle = values.get("bundle", USUAL_BUNDLE if storage_class in _ASLEEP else None)
    return TierPolicy(name, values["root"], storage_class, values.get("thin"), bundle)
