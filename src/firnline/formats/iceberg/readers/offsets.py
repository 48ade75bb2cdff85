"""Offsets of Iceberg's streaming source, as Spark's checkpoints hold them."""

from __future__ import annotations

import json
from typing import Any

from firnline.model.readers import StreamOffset

_KEYS = {"version": int, "snapshot_id": int, "position": int, "scan_all_files": bool}
_VERSION = 1
_NOTHING_YET = -1


def offset_in(text: str) -> StreamOffset | None:
    """Returns the offset of an Iceberg source; None for that of another one. Raises ValueError for what is no JSON, for
    an offset that lacks a part, and for an unknown version: where its reader stands would be a guess.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("no JSON that anybody writes") from None
    if not isinstance(found, dict) or "snapshot_id" not in found:
        return None
    _refuse_strange(found)
    snapshot = found["snapshot_id"]
    return StreamOffset(None if snapshot == _NOTHING_YET else str(snapshot))


def _refuse_strange(found: dict[str, Any]) -> None:
    if found.get("version") != _VERSION:
        raise ValueError(f"an offset of version {found.get('version')!r}, not {_VERSION}")
    for key, kind in _KEYS.items():
        if type(found.get(key)) is not kind:
            raise ValueError(f"an offset whose {key} is {found.get(key)!r}")
