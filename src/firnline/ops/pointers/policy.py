"""What a policy says of a table's pointers, and what became of one."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from firnline.errors import FirnlineError
from firnline.model.snapshots import MAIN, RefKind
from firnline.ops.pointers.truth import Behind
from firnline.pointers.names import Naming
from firnline.policy.inherit import Effective
from firnline.policy.policy import Level
from firnline.ports.formats import State

FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PointerPolicy:
    """What a policy says of a table's pointers: how they are named, None if there are to be none; of which branches
    there are some, and how long one stays whose table has another name or is gone; and whether there is a hint, too.
    `is_said` tells whether any of the policy's levels speaks of pointers.
    """

    naming: Naming | None
    branches: tuple[str, ...]
    links_ms: int
    hint: bool = False
    is_said: bool = True

    @staticmethod
    def of(effective: Effective) -> PointerPolicy:
        naming, is_said = effective.pointers.value, effective.pointers.source.level is not Level.DEFAULT
        branches, links = effective.pointer_branches.value, effective.pointer_links.value
        hint = effective.version_hint.value
        return PointerPolicy(Naming(naming) if naming else None, branches, links, hint, is_said)

    @property
    def is_on(self) -> bool:
        return self.naming is not None

    def chosen(self, state: State) -> list[str]:
        """Returns the branches of the table that have a pointer; main has one before its first commit, too."""
        refs = [name for name, ref in state.refs.items() if ref.kind is RefKind.BRANCH]
        names = dict.fromkeys((*(each for each in self.branches if "*" not in each and "?" not in each), *refs))
        return [name for name in names if self._wants(name) and (name in refs or name == MAIN)]

    def _wants(self, branch: str) -> bool:
        return any(fnmatchcase(branch, pattern) for pattern in self.branches)


@dataclass(frozen=True, slots=True)
class PointerStatus:
    """What became of one pointer. `was_behind` tells how stale it was found, `problem` why nothing became of it."""

    key: str
    outcome: str
    branch: str
    metadata: str | None = None
    ordinal: str | None = None
    was_behind: Behind | None = None
    problem: FirnlineError | None = None

    @staticmethod
    def failed(key: str, branch: str, problem: FirnlineError) -> PointerStatus:
        return PointerStatus(key, FAILED, branch, problem=problem)
