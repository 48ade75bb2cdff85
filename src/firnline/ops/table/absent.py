"""What stands in where a table was opened without tiers or without checkpoints: to act as if there were none would be
a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firnline.errors import RefusedForSafety

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firnline.ops.tiers.tier import Tier
    from firnline.ports.catalogs import TableName
    from firnline.ports.stores import ObjectMeta


def no_tiers(table: TableName, tier: str, uuid: str) -> Tier:
    """Stands in where no tier can be opened."""
    raise RefusedForSafety(f"the tier {tier} cannot be opened from here", hint="this is a bug")


class NoCheckpoints:
    """Stands in where no checkpoint can be seen."""

    def get(self, key: str) -> bytes:
        raise RefusedForSafety(f"{key} cannot be seen from here", hint="this is a bug")

    def head(self, key: str) -> ObjectMeta:
        raise RefusedForSafety(f"{key} cannot be seen from here", hint="this is a bug")

    def names(self, folder: str) -> Sequence[str]:
        raise RefusedForSafety(f"{folder} cannot be seen from here", hint="this is a bug")

    def folders(self, folder: str) -> Sequence[str]:
        raise RefusedForSafety(f"{folder} cannot be seen from here", hint="this is a bug")
