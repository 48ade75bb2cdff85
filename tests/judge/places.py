"""Where a world's files lie, and the one form in which two paths are compared."""

from __future__ import annotations

from pathlib import Path


def canonical(path: str) -> str:
    """The path on disk of `file:///a`, `file:/a` or `/a`. Percent signs stay: Iceberg's paths are not encoded."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return path


def size_on_disk(path: str) -> int:
    return Path(canonical(path)).stat().st_size
