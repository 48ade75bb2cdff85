"""The versions of a table's metadata: how many there are, how large, and what clears them away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firnline.plans.pages import counted, size


@dataclass(frozen=True, slots=True)
class MetadataVersions:
    """The present version of a table's metadata and the earlier ones that its log names. No expiry removes them, and
    beside small tables they are most of the bytes.

    `bytes` counts those whose size is known; `unsized` are the others, all of them where nothing was asked. `cleared`:
    writers delete what falls off the log. `setting` is what would make them do so, with fewer earlier versions: then
    `left` are there, of `left_bytes`. It is None where there is nothing to gain.
    """

    versions: int
    bytes: int = 0
    unsized: int = 0
    cleared: bool = False
    setting: str | None = None
    left: int = 0
    left_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Returns what `plan --json` says of them; `bytes` is null where the size of none is known."""
        would = {"set": self.setting, "versions": self.left, "bytes": self.left_bytes}
        return {
            "versions": self.versions,
            "bytes": None if self.unsized == self.versions else self.bytes,
            "unsized": self.unsized,
            "cleared": self.cleared,
            "clearing": None if self.setting is None else would,
        }

    def in_words(self) -> str:
        """Returns how much there is, and what becomes of it."""
        what = f"{counted(self.versions, 'version')}{self._how_large}"
        fate = "writers delete what falls off its log" if self.cleared else "no expiry removes any of them"
        return f"{what}; {fate}" if self.versions > 1 or self.cleared else what

    @property
    def _how_large(self) -> str:
        if not self.unsized:
            return f", {size(self.bytes)}"
        return "" if self.unsized == self.versions else f", {size(self.bytes)} and {self.unsized:,} of unknown size"

    @property
    def hint(self) -> str | None:
        """What an operator may set to have less of them; None where there is nothing to gain."""
        if self.setting is None:
            return None
        left = f"{counted(self.left, 'version')} of metadata, {size(self.left_bytes)}"
        return f"the table properties {self.setting} would leave {left}; the next writer deletes the others"
