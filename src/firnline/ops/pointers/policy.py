"""What a policy says of a table's pointers, and what became of one."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from firnline.model.snapshots import MAIN, RefKind
from firnline.ops.pointers.truth import Behind
from firnline.pointers.names import Naming
from firnline.policy.inherit import Effective
from firnline.ports.formats import State


@dataclass(frozen=True, slots=True)
class PointerPolicy:
    """What a policy says of a table's pointers: how they are named, of which branches there are some, and how long one
    stays whose table has another name or is gone; and whether there is a hint, too.
    """

    naming: Naming
    branches: tuple[str, ...]
    links_ms: int
    hint: bool = False

    @staticmethod
    def of(effective: Effective) -> PointerPolicy | None:
        """Returns what is in force; None where no policy asks for pointers."""
        naming = effective.pointers.value
        if naming is None:
            return None
        branches, links = effective.pointer_branches.value, effective.pointer_links.value
        return PointerPolicy(Naming(naming), branches, links, effective.version_hint.value)

    def chosen(self, state: State) -> list[str]:
        """Returns the branches of the table that have a pointer; main has one before its first commit, too."""
        refs = [name for name, ref in state.refs.items() if ref.kind is RefKind.BRANCH]
        names = dict.fromkeys((*(each for each in self.branches if "*" not in each and "?" not in each), *refs))
        return [name for name in names if self._wants(name) and (name in refs or name == MAIN)]

    def _wants(self, branch: str) -> bool:
        return any(fnmatchcase(branch, pattern) for pattern in self.branches)


@dataclass(frozen=True, slots=True)
class PointerStatus:
    """What became of one pointer. `was_behind` tells how stale it was found."""

    key: str
    outcome: str
    branch: str
    metadata: str | None = None
    ordinal: str | None = None
    was_behind: Behind | None = None
