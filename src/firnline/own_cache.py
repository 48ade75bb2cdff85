"""Where this user's caches lie: what firnline can make again, each sort in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from firnline.xdg import base_folder


def own_cache(sort: str) -> Path:
    """Returns the folder, which need not be there. Raises RuntimeError for a user without a home."""
    return base_folder("XDG_CACHE_HOME", ".cache") / "firnline" / sort
