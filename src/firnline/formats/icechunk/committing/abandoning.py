"""Why a commit is given up."""

from __future__ import annotations


class Abandoned(Exception):
    """The commit is not carried on, for the reason that it says: what was done stays, and the rest is decided anew.
    `serious` is for what must be told, even if the rest can be decided anew.
    """

    def __init__(self, why: str, serious: bool = False) -> None:
        super().__init__(why)
        self.why, self.serious = why, serious
