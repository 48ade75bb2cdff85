"""The shapes of what a record says: whoever reads it must not stumble over something that nobody wrote."""

from __future__ import annotations

from typing import Any

Shape = Any
"""A type; a dict of names that must be there, each with its shape; a list of one shape, which every item has."""

_OR_NOTHING = type(None)
_TALLY: Shape = {"files": int, "bytes": int}
PLAN: Shape = {
    "table": str,
    "uuid": str,
    "request": dict,
    "grace_ms": int,
    "meant": bool,
    "expire": [str],
    "expire_refs": [str],
    "beside": (dict, _OR_NOTHING),
    "seen": (dict, _OR_NOTHING),
    "victims": {**_TALLY, "by_kind": dict},
    "refused": (str, _OR_NOTHING),
    "conflict": (str, _OR_NOTHING),
    "parts": {"victims": dict, "walked": dict},
}
EVENT: Shape = {
    "number": int,
    "state": str,
    "at_ms": int,
    "write_id": str,
    "seal": str,
    "detail": {
        "left_alone": (list, _OR_NOTHING),
        "lost_refs": (list, _OR_NOTHING),
        "history": (dict, _OR_NOTHING),
        "forgotten_parts": (dict, _OR_NOTHING),
    },
}
REMOVAL: Shape = {"removal": {"snapshots": [{"snapshot-id": (int, str)}], "refs": (dict, _OR_NOTHING)}}
"""What the detail of an event has that says what a commit takes out."""


def misfit(said: Any, shape: Shape, name: str = "") -> str | None:
    """Returns the name of the first thing that is missing or of another shape; None where all is as it must be."""
    if isinstance(shape, dict):
        return _of_fields(said, shape, name) if isinstance(said, dict) else name
    if isinstance(shape, list):
        items = said if isinstance(said, list) else [None]
        return next((wrong for each in items if (wrong := misfit(each, shape[0], name)) is not None), None)
    fits = isinstance(said, shape) and not (shape is int and isinstance(said, bool))
    return None if fits else name


def _of_fields(said: dict[str, Any], shape: dict[str, Shape], name: str) -> str | None:
    inner = (misfit(said.get(each), below, f"{name}.{each}".lstrip(".")) for each, below in shape.items())
    return next((wrong for wrong in inner if wrong is not None), None)
