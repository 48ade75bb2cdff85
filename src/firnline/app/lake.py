"""The lake: everything that a program or a command can ask of its tables."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.app.places import ENGINES, Table
from firnline.app.runs import Moment, PlanView, instant, request_of
from firnline.app.searches import Searches
from firnline.errors import UnreadableMetadata, UsageError
from firnline.model.holds import Hold
from firnline.model.snapshots import RefKind
from firnline.model.times import parse_duration
from firnline.ops.history.reading import check_plot_name, expired_snapshots, timeline_of, write_plot
from firnline.ops.history.timeline import Span, Timeline
from firnline.ops.looking.check import Checked, check
from firnline.ops.looking.permissions import Permissions, permissions
from firnline.ops.looking.why import Explanation, why
from firnline.ops.marks.adopt import Adoption, adopt, adoption_of, unaware
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import FOREVER, Tagged, add_tag, holds_alone, remove_tag, resolve
from firnline.ops.runs.advance import RunStatus
from firnline.ops.runs.decision import policy_in_force
from firnline.plans.request import Request
from firnline.policy.inherit import Effective
from firnline.ports.progress import Progress, Silent
from firnline.settings import read_config

if TYPE_CHECKING:
    from firnline.ports.formats import State
    from firnline.spark.session import Session


class Lake(Searches):
    """Every table of the configured catalogs, and any table by its location."""

    def why(self, table: Table, what: str, **options: Any) -> Explanation:
        """Returns what keeps a snapshot, a ref or a file; or why nothing does."""
        return why(self.table_context(table), request_of(**options), what)

    def policy(self, table: Table, keep: Mapping[str, str] | None = None) -> tuple[State, Effective]:
        """Returns the policy in force on a table, every value with its source."""
        source = self.source(table)
        state = source.load()
        return state, policy_in_force(state, source.name, self.config, Request(keep=keep or {}))

    def check(self, table: Table) -> Checked:
        """Returns whether every file that the table's snapshots need exists, with its size. Changes nothing."""
        place = self.place(table)
        return check(place.source, place.store, self._choose, self.progress)

    def tags(self, table: Table) -> list[Tagged]:
        """Returns the tags of a table, each with the time until which it is kept."""
        state = self.source(table).load()
        return [Tagged.of(state, ref) for ref in state.refs.values() if ref.kind is RefKind.TAG]

    def tag(self, table: Table, name: str, snapshot: str | None = None, *, retain: str | int | None = None) -> Tagged:
        """Returns the tag as it was written. `snapshot` is an id or a ref, the current one if None; `retain` an age
        such as 30d, or "forever"; without it the table's own default counts.
        """
        return add_tag(self.table_context(table), name, snapshot, _age(retain))

    def untag(self, table: Table, name: str, **options: Any) -> RunStatus | PlanView | None:
        """Removes a tag. Returns None, or the run that it took: a tag that alone holds a snapshot goes with its files,
        and `options` are those of `drop`.
        """
        work = self.table_context(table)
        if holds_alone(work, name):
            return self.drop(table, [name], **options)
        remove_tag(work, name)
        return None

    def holds(self, table: Table) -> tuple[Hold, ...]:
        return self.source(table).load().holds

    def hold(
        self,
        table: Table,
        name: str,
        snapshot: str | None = None,
        *,
        why: str = "",
        who: str | None = None,
        until: Moment | None = None,
    ) -> tuple[Hold, str]:
        """Returns the hold on a snapshot, or on the whole table, and what it protects in words."""
        work = self.table_context(table)
        state = work.source.load()
        held = resolve(state, snapshot) if snapshot is not None and snapshot in state.refs else snapshot
        hold = Hold(name, who or getpass.getuser(), why, held, instant(until))
        return hold, add_hold(work, hold)

    def release(self, table: Table, name: str) -> None:
        """Removes a hold; what it kept then falls under the policy."""
        release_hold(self.table_context(table), name)

    def adoption(self, table: Table) -> tuple[Adoption, ...]:
        """Returns what `adopt` would write into the table's own retention. Changes nothing."""
        work = self.table_context(table)
        return adoption_of(work, work.source.load())[1]

    def adopt(
        self, table: Table, *, confirm: Callable[[tuple[Adoption, ...]], None] = lambda wanted: None
    ) -> tuple[tuple[Adoption, ...], Sequence[str]]:
        """Writes the policy's reach into the table's own retention, so that no other engine's expiry undercuts it.
        Returns what was written, and the branches on which jobs still write that started before.

        `confirm` is shown what would be written, if there is anything; it raises to stop.
        """
        work = self.table_context(table)
        _, wanted = adoption_of(work, work.source.load())
        if not wanted:
            return (), unaware(work)
        confirm(wanted)
        return adopt(work), unaware(work)

    def permissions(self, command: str, store: str = "s3", table: Table | None = None) -> Permissions:
        """Returns the least that a command needs to be allowed on a store, or on one very table."""
        return permissions(command, store, None if table is None else self.table_context(table))

    def expired_snapshots(self, table: Table) -> Iterator[Mapping[str, Any]]:
        """Yields the snapshots that the table remembers, as they stood in its metadata. Reads them when asked."""
        work = self.table_context(table)
        return expired_snapshots(work.source, work.source.load(), work.store)

    def history(
        self,
        table: Table,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        plot: str | Path | None = None,
    ) -> tuple[Timeline, UnreadableMetadata | None]:
        """Returns the table's days, and what of its history could not be read. Changes nothing."""
        if plot is not None:
            check_plot_name(Path(plot))
        work = self.table_context(table)
        state = work.source.load()
        span = Span(instant(since), instant(until))
        timeline, trouble = timeline_of(work.source, state, work.store, work.root(state), span)
        if plot is not None:
            write_plot(timeline, Path(plot))
        return timeline, trouble


def _age(retain: str | int | None) -> int | None:
    if not isinstance(retain, str):
        return retain
    return FOREVER if retain.lower() == "forever" else parse_duration(retain)


def open_lake(
    config: str | None = None,
    *,
    engine: str = "auto",
    session: Session | None = None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    trust: Iterable[str] = (),
) -> Lake:
    """Returns the lake that firnline.yaml and PyIceberg's configuration describe. `trust` names snapshots whose
    manifest lists are whole, whatever their summaries say.
    """
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}", hint=f"one of: {', '.join(ENGINES)}")
    return Lake(
        read_config(config), engine, session, progress or Silent(), interrupted, trust=frozenset(map(str, trust))
    )
