"""Guarding the purge of orphans: every table of every catalog is read again, and every file is looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from firnline.errors import ObjectNotFound, RefusedForSafety
from firnline.journal.runs import Run
from firnline.ops.guards import SPARED, Line, refuse_forbidden
from firnline.ops.newcomers import Newcomers
from firnline.ops.orphans.neighbours import Neighbour, all_tables, expand_of
from firnline.ops.workplace import Workplace, same_table

_THREADS = 32
_CHANGED = "another object has this name since it was listed"


@dataclass(frozen=True, slots=True)
class LakeGuard:
    """Spares what any table of the lake needs by now, and whatever is not the object that was listed.

    So a table that was created in the folder meanwhile, or registered again, is seen before each batch.
    """

    work: Workplace
    run: Run
    newcomers: Newcomers

    def look_again(self) -> None:
        now_ms = self.work.now()
        state = self.work.source.load()
        same_table(state, self.run)
        refuse_forbidden(state, now_ms)
        neighbours = all_tables(lambda: self.work.everyone(self.run.plan["scope"]["also"]))
        self._refuse_fewer_catalogs(neighbours)
        self._refuse_return(neighbours)
        expand = expand_of(neighbours, self.work.source.format.expand)
        for each in neighbours:
            self.newcomers.add(each.needs(now_ms), expand)

    def doubts(self, lines: Sequence[Line]) -> dict[str, str]:
        due = [line for line in lines if not self.newcomers.spare(line.key)]
        spared = {line.key: SPARED for line in lines if self.newcomers.spare(line.key)}
        with ThreadPoolExecutor(_THREADS) as pool:
            fresh = pool.map(self._is_as_listed, due)
            return spared | {line.key: _CHANGED for line, same in zip(due, fresh, strict=True) if not same}

    def _is_as_listed(self, line: Line) -> bool:
        """Tells whether the object is the one that was judged. One that is gone cannot be the wrong one."""
        try:
            now = self.work.store.head(line.key)
        except ObjectNotFound:
            return True
        return (now.size, now.modified_ms) == (line.size, line.modified_ms) and now.etag == line.etag

    def _refuse_fewer_catalogs(self, neighbours: Sequence[Neighbour]) -> None:
        """Raises where a catalog that the search asked is not configured here: its tables would have no say."""
        asked = set(self.run.plan["catalogs"])
        missing = asked - {each.work.source.name.catalog for each in neighbours}
        if missing:
            raise RefusedForSafety(
                f"{self.run.id} was planned with tables of {', '.join(sorted(missing))}, of which none is known here",
                hint="configure the same catalogs, or plan again",
            )

    def _refuse_return(self, neighbours: Sequence[Neighbour]) -> None:
        """Raises where a table that counted as dropped is in a catalog again."""
        departed = self.run.plan["scope"]["departed"]
        for each in neighbours:
            if departed is not None and each.state.uuid == departed:
                raise RefusedForSafety(
                    f"the dropped table {departed} is back as {each.state.table}", hint="nothing more of it is removed"
                )
