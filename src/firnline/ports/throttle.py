"""How fast requests may go to a part of a store."""

from __future__ import annotations

from typing import Protocol


class Budget(Protocol):
    """Keys per second under each prefix, for everybody who shares this budget."""

    @property
    def rate(self) -> float:
        """The most keys per second that this holder may ever send under one prefix."""
        ...

    def reserve(self, prefix: str, keys: int) -> float:
        """Takes `keys` out of the budget of `prefix` and returns how many seconds to wait before they are sent."""
        ...

    def share(self, parts: int) -> Budget:
        """Returns the budget of one of `parts` holders that work at once; picklable."""
        ...
