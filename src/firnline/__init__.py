"""firnline keeps the history that matters and safely removes the rest.

>>> import firnline
>>> lake = firnline.open()                       # doctest: +SKIP
>>> lake.plan("lake.artemis.registry")           # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firnline.arrival import use_packed
from firnline.version import VERSION

if TYPE_CHECKING:
    from firnline.app.pointers.verbs import OpenedPath
    from firnline.lake import Lake

__all__ = ["__version__", "open", "open_path"]
__version__ = VERSION
use_packed(__path__[0])


def open(config: str | None = None, **options: Any) -> Lake:
    """Returns the lake that the configuration describes; every option of the command line has its keyword."""
    from firnline.lake import open_lake

    return open_lake(config, **options)


def open_path(path: str, **options: Any) -> OpenedPath:
    """Returns the table in a folder by its pointer, without a catalog; options as in `LakePointers.open_path`."""
    return open().pointers.open_path(path, **options)
