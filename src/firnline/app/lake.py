"""The lake: everything that a program or a command can ask of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.app.places import ENGINES, Table
from firnline.app.runs import Moment, instant, request_of
from firnline.app.searches import Searches
from firnline.errors import UnreadableMetadata, UsageError
from firnline.ops.history.reading import check_plot_name, expired_snapshots, timeline_of, write_plot
from firnline.ops.history.timeline import Span, Timeline
from firnline.ops.looking.check import Checked, check
from firnline.ops.looking.why import Explanation, why
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
