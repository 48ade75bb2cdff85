"""What can be wrong with a file, as one error, so that a caller has one thing to catch."""

from __future__ import annotations

from firnline.formats.damage import Damaged, NotUnderstood


class CorruptAvro(Damaged):
    """The bytes are no readable Avro file, or hold another type than the one asked for.

    Nothing decoded from such a file may be used: who goes on would take a live file for an unneeded one.
    """


class UnsupportedAvro(CorruptAvro, NotUnderstood):
    """The bytes may be sound, in a way of writing that is not read here: no damage, and yet not to be used."""


def too_large(limit: int) -> CorruptAvro:
    return CorruptAvro(f"the file claims to hold, or holds, more than {limit} bytes")
