"""Where this user's caches lie: what firnline can make again, each sort in a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path


def own_cache(sort: str) -> Path:
    """Returns the folder, which need not be there. Raises RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "firnline" / sort
