"""Objects of S3's archive classes: whether they can be read, and asking for them.

A request for an object that is under way already is refused by S3 in words of its own, and one that was sent again
because its answer got lost is such a request: both are taken for done.
"""

from __future__ import annotations

from typing import Any

from firnline.errors import PermanentStoreError
from firnline.ports.catalogs import always
from firnline.ports.thawing import Warmth
from firnline.stores.copies.requests import refusing
from firnline.stores.copies.route import OneStore
from firnline.stores.copies.uploads import FROZEN_CLASSES
from firnline.stores.failures import code_of
from firnline.stores.keys import Key, object_key, object_name

_SPEEDS = {"bulk": "Bulk", "standard": "Standard", "expedited": "Expedited"}
_UNDER_WAY = "RestoreAlreadyInProgress"


class ObjectThaw(OneStore):
    """Asks one store. Files and other stores have no such class: whatever lies there can be read."""

    def warmth(self, key: str) -> Warmth:
        where = object_key(key)
        if where.scheme == "s3":
            return _warmth(self._said(where))
        self._requests.head(where)
        return Warmth.READABLE

    def request(self, key: str, days: int, speed: str) -> None:
        where = object_key(key)
        if where.scheme != "s3":
            return
        said = self._said(where)
        if _is_archived(said) and not _is_under_way(said):
            asked = _asked(where, said, days, speed)
            self._requests.write(where, lambda: self._restore(where, asked), always)

    def _said(self, key: Key) -> dict[str, Any]:
        return self._requests.read(key, lambda: self._head(key))

    def _head(self, key: Key) -> dict[str, Any]:
        buckets = self._requests.buckets
        with buckets.asking(key), refusing(key):
            said: dict[str, Any] = buckets.s3().client.head_object(Bucket=key.authority, Key=object_name(key))
            return said

    def _restore(self, key: Key, asked: dict[str, Any]) -> None:
        from botocore.exceptions import ClientError

        client = self._requests.buckets.s3().client
        with refusing(key):
            try:
                client.restore_object(Bucket=key.authority, Key=object_name(key), RestoreRequest=asked)
            except ClientError as error:
                if code_of(error) != _UNDER_WAY:
                    raise


def _warmth(said: dict[str, Any]) -> Warmth:
    if _is_under_way(said):
        return Warmth.UNDER_WAY
    restored = 'ongoing-request="false"' in said.get("Restore", "")
    return Warmth.READABLE if restored or not _is_archived(said) else Warmth.FROZEN


def _is_under_way(said: dict[str, Any]) -> bool:
    return 'ongoing-request="true"' in said.get("Restore", "")


def _is_archived(said: dict[str, Any]) -> bool:
    """Tells whether an object's class is one that must be asked for, or S3 has moved it to such a tier by itself."""
    return said.get("StorageClass") in FROZEN_CLASSES or "ArchiveStatus" in said


def _asked(key: Key, said: dict[str, Any], days: int, speed: str) -> dict[str, Any]:
    """Returns what a request says. An object that S3 moved by itself comes back for good: it takes no days."""
    deepest = "DEEP_ARCHIVE" in (said.get("StorageClass"), str(said.get("ArchiveStatus", "")).removesuffix("_ACCESS"))
    if speed not in _SPEEDS or (speed == "expedited" and deepest):
        known = ("bulk", "standard") if deepest else tuple(_SPEEDS)
        raise PermanentStoreError(f"{key.text!r} cannot be restored {speed!r}", f"its class knows {', '.join(known)}")
    tier = {"GlacierJobParameters": {"Tier": _SPEEDS[speed]}}
    return tier if "ArchiveStatus" in said else {"Days": days, **tier}
