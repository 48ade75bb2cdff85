"""Ways in which a file on disk gets damaged, each done to a real file in place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

Spoil = Callable[[str], None]

_SYNC_BYTES = 16


def remove(path: str) -> None:
    os.unlink(path)


def empty(path: str) -> None:
    Path(path).write_bytes(b"")


def cut_in_half(path: str) -> None:
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: len(data) // 2])


def cut_the_last_byte(path: str) -> None:
    Path(path).write_bytes(Path(path).read_bytes()[:-1])


def replace_with_text(path: str) -> None:
    Path(path).write_bytes(b"<html>404 Not Found</html>" * 20)


def break_a_block(path: str) -> None:
    """Changes bytes of the last block and leaves every length as it was."""
    data = bytearray(Path(path).read_bytes())
    for place in range(len(data) - _SYNC_BYTES - 12, len(data) - _SYNC_BYTES):
        data[place] ^= 0xFF
    Path(path).write_bytes(bytes(data))


def cut_between_blocks(path: str) -> None:
    """Drops the last block of an Avro file: what is left is a whole file with fewer records."""
    data = Path(path).read_bytes()
    sync = data[-_SYNC_BYTES:]
    before = data.rindex(sync, 0, len(data) - 1)
    Path(path).write_bytes(data[: before + _SYNC_BYTES])


SPOILED: dict[str, Spoil] = {
    "missing": remove,
    "empty": empty,
    "cut in half": cut_in_half,
    "one byte short": cut_the_last_byte,
    "not Avro": replace_with_text,
    "broken block": break_a_block,
}
"""What is done to a unit, by name; each leaves a file that nobody may take for whole."""
