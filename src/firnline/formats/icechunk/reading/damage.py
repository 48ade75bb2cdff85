"""What can be wrong with an object's bytes, as two errors: a caller has nothing else to catch."""

from __future__ import annotations

from firnline.formats.damage import Damaged, NotUnderstood


class CorruptIcechunk(Damaged):
    """The bytes contradict the format, or what another object says of them."""


class UnsupportedIcechunk(NotUnderstood):
    """The bytes may be sound: they use something that this version does not understand."""
