"""Guarding the purge of orphans: every table of every catalog is read again, and every file is looked at again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from firnline.errors import FirnlineError, ObjectNotFound, RefusedForSafety
from firnline.journal.events import RECORDS_KEY
from firnline.journal.runs import Run
from firnline.model.files import Root
from firnline.model.locations import identity
from firnline.model.times import parse_instant
from firnline.ops.orphans.neighbours import Here, Neighbour, PointedByStrangers, all_tables, by_server, overlap
from firnline.ops.reachability.bounds import NOWHERE, Bounds
from firnline.ops.reachability.live_roots import forbidden
from firnline.ops.reachability.since_plan import ReachableSincePlan
from firnline.ops.runs.guard import SPARED, ListedFile, chosen_by, names_of, refuse_forbidden, refuse_missing
from firnline.ops.table.context import TableContext
from firnline.policy.values import SHORTEST_WRITE_MS
from firnline.ports.abilities import UnprovedNames

_THREADS = 32
_CHANGED = "the store says another size or age of it than the list"


@dataclass(slots=True)
class LakeGuard:
    """Spares what any table of the lake needs by now, and whatever is not the object that was listed.

    So a table that was created in the folder meanwhile, or registered again, is seen before each batch. `search` is
    what the run's record says of it.
    """

    work: TableContext
    run: Run
    search: Mapping[str, Any]
    since_plan: ReachableSincePlan
    held: dict[str, str | None] = field(default_factory=dict)
    bounds: Bounds = NOWHERE
    is_sound: bool = False
    is_timed: bool = False

    def look_again(self) -> None:
        self._go_by_the_files_clocks()
        self.work.real.forget()
        now_ms = self.work.now()
        state = self.work.source.load()
        self.work.same_table(state, self.run)
        refuse_forbidden(state, now_ms)
        self._refuse_unsealed_search()
        self.bounds = self.work.bounds(state, self.run, searched=True)
        neighbours = self._everyone()
        if self._has_looked_at_files(neighbours):
            self.look_again()
            return
        self._refuse_fewer_catalogs(neighbours)
        self._refuse_return(neighbours)
        self._ask(neighbours, now_ms)
        self.held.clear()
        self.held.update(_words(neighbours, now_ms, names_of(self.work, self.run)))

    def _go_by_the_files_clocks(self) -> None:
        """Goes by the clocks that date the searched files, from the first look on. Raises RefusedForSafety where one is
        far from that of the records, by which the lease told the time.
        """
        if not self.is_timed:
            self.work = self.work.by_clocks_of(self.search["scope"]["folders"], self.run.folder.root)
            self.is_timed = True

    def look_back(self) -> None:
        with suppress(FirnlineError):
            neighbours = self._everyone()
            if neighbours:  # any table will do: the searched one may be gone
                self.since_plan.choose = chosen_by(neighbours[0].work, neighbours[0].state)
            self._ask(neighbours, self.work.now())

    def _everyone(self) -> list[Neighbour]:
        scope = self.search["scope"]
        return all_tables(lambda afresh: self.work.everyone(scope["also"], scope["folders"]))

    def _ask(self, neighbours: Sequence[Neighbour], now_ms: int) -> None:
        """Reads afresh what these tables need, and those that pointers in their folders lead to."""
        here = Here(self.work.source.format.expand, self.work.server)
        for by_name in (False, True):  # one walk each on a server, however many tables there are
            asked = [each for each in neighbours if each.unique_names is by_name]
            own = ((each, file) for each in asked for file in each.needs(now_ms))
            strangers = PointedByStrangers(asked)
            strangers.refuse_outside(self.search["scope"]["folders"])
            needed = ((each, Root(file, True)) for each, file in chain(own, strangers.needs()))
            for part in by_server(neighbours, needed, here):
                self.since_plan.add(part.roots, part.expand, by_name=by_name)

    def reasons_to_spare(self, lines: Sequence[ListedFile]) -> dict[str, str]:
        self.since_plan.decide()
        spared = dict.fromkeys(self.since_plan.spared([line.key for line in lines]), SPARED)
        spared |= {line.key: reason for line in lines if (reason := self._held(line.key))}
        spared |= {line.key: reason for line in lines if (reason := self.bounds.forbids(line.key))}
        # A tag is not enough: a writer that repeats its work leaves the same bytes, and with them the same tag.
        due = [line for line in lines if line.key not in spared]
        with ThreadPoolExecutor(_THREADS) as pool:
            still = pool.map(self._is_still_old, due)
            return spared | {line.key: _CHANGED for line, old in zip(due, still, strict=True) if not old}

    def newly_needed(self, keys: Sequence[str]) -> set[str]:
        return self.since_plan.newly_needed(keys)

    def _has_looked_at_files(self, neighbours: Sequence[Neighbour]) -> bool:
        """Tells whether files of searched tables had to be looked for, which is done once: it takes its time, so that a
        commit may have come. Raises RefusedForSafety if some are not there.
        """
        folders = self.search["scope"]["folders"]
        due = [each for each in neighbours if isinstance(each.work.source.format, UnprovedNames) and not self.is_sound]
        due = [each for each in due if any(overlap(folder, own) for folder in folders for own in each.state.owned)]
        for each in due:
            refuse_missing(each.work, each.state)
        self.is_sound = True
        return bool(due)

    def _held(self, key: str) -> str | None:
        """Returns why nothing may go from the innermost writers' folder that the object lies in; None where it may."""
        folder = names_of(self.work, self.run)(identity(key)) if self.held else ""
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in self.held:
                return self.held[folder]
        return None

    def _is_still_old(self, line: ListedFile) -> bool:
        """Tells whether the store itself says now of an object what the list says: its size, and that it is old.

        The floor is looked at again, by the store's clock: the search had only this machine's, as it writes nothing.
        One that is gone cannot be the wrong one.
        """
        try:
            now = self.work.store.head(line.key)
        except ObjectNotFound:
            return True
        cutoff_ms = min(parse_instant(self.search["older_than"]), self.work.now() - SHORTEST_WRITE_MS)
        return now.size == line.size and now.modified_ms is not None and 0 < now.modified_ms < cutoff_ms

    def _refuse_unsealed_search(self) -> None:
        """Raises unless the record is sealed: nothing else says which tables that no catalog has were
        counted, and a forger would leave them out.
        """
        if not self.run.is_sealed:
            raise RefusedForSafety(
                f"the record of {self.run.id} is not sealed with your key, and it alone says whom the search asked",
                hint=f"search again here; or give every machine the same {RECORDS_KEY}",
            )

    def _refuse_fewer_catalogs(self, neighbours: Sequence[Neighbour]) -> None:
        """Raises where a catalog that the search asked is not configured here: its tables would have no say."""
        asked = set(self.search["catalogs"])
        missing = asked - {each.work.source.name.catalog for each in neighbours}
        if missing:
            raise RefusedForSafety(
                f"{self.run.id} was planned with tables of {', '.join(sorted(missing))}, of which none is known here",
                hint="configure the same catalogs, or plan again",
            )

    def _refuse_return(self, neighbours: Sequence[Neighbour]) -> None:
        """Raises where a table that counted as dropped is in a catalog again."""
        departed = self.search["scope"]["departed"]
        for each in neighbours:
            if departed is not None and each.state.uuid == departed:
                raise RefusedForSafety(
                    f"the dropped table {departed} is back as {each.state.table}", hint="nothing more of it is removed"
                )


def _words(neighbours: Sequence[Neighbour], now_ms: int, named: Callable[[str], str]) -> dict[str, str | None]:
    """Returns every folder that tables write to, with the reason why nothing may go there, or None; none at all where
    no table forbids anything. Of tables that share a folder one is enough to forbid.
    """
    words: dict[str, str | None] = {}
    for each in neighbours:
        reason = forbidden(each.state, now_ms)
        said = None if reason is None else f"nothing of {each.state.table} may be removed now: {reason}"
        for place in (*each.places, *each.backups):
            folder = named(f"{identity(place.folder).rstrip('/')}/").rstrip("/")
            words[folder] = words.get(folder) or said
    return words if any(words.values()) else {}
