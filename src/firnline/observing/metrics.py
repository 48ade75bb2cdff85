"""Metrics of runs, gathered from their news, in the text format of Prometheus (0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock

from firnline.foreign import concealed
from firnline.observing.families import Family, Kind, histogram_lines
from firnline.ports.observing.news import News

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_TABLES = 1_000
OTHER = "other"
"""Where more tables are told of than a server of metrics would bear, these share one name."""
SECONDS = (1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 604_800.0)

_DONE, _COMMITTED, _UNDOING = "done", "committed", "undoing"


class Metrics:
    """Counts what it hears. `dropped` returns how many pieces of news never reached a log or a webhook."""

    def __init__(self, dropped: Callable[[], int] = lambda: 0) -> None:
        self._lock, self._tables, self._dropped = Lock(), set[str](), dropped
        counter, gauge = Kind.COUNTER, Kind.GAUGE
        self._moves = Family(
            "firnline_run_moves_total", "Runs that entered a state.", counter, ("table", "kind", "state")
        )
        self._failures = Family("firnline_failures_total", "Runs that stopped, by error.", counter, ("table", "error"))
        self._files = Family("firnline_deleted_files_total", "Files deleted by finished runs.", counter, ("table",))
        self._bytes = Family("firnline_deleted_bytes_total", "Bytes deleted by finished runs.", counter, ("table",))
        self._snapshots = Family("firnline_expired_snapshots_total", "Snapshots expired.", counter, ("table",))
        self._seconds = Family("firnline_stage_seconds", "How long runs were in a state.", Kind.HISTOGRAM, ("state",))
        self._success = Family(
            "firnline_last_success_timestamp_seconds", "When a run of a table was last done.", gauge, ("table",)
        )
        self._policy = Family("firnline_tables", "Tables in and out of policy.", gauge, ("policy",))
        self._lost = Family("firnline_news_dropped_total", "News that found no room.", counter, ())

    def hear(self, news: News) -> None:
        with self._lock:
            table = self._table(news.table)
            if news.error is not None:
                self._failures.add((table, news.error))
                return
            self._moves.add((table, news.kind, news.state))
            if news.after is not None and news.took_ms is not None:
                self._seconds.observe((news.after,), news.took_ms / 1000, SECONDS)
            self._count(table, news)

    def _count(self, table: str, news: News) -> None:
        if news.state == _COMMITTED and news.after != _UNDOING:  # an undo that failed goes back there
            self._snapshots.add((table,), news.figures.get("snapshots", 0))
        if news.state == _DONE:
            self._files.add((table,), news.figures.get("deleted_files", 0))
            self._bytes.add((table,), news.figures.get("deleted_bytes", 0))
            self._success.set((table,), news.at_ms / 1000)

    def failed(self, table: str, error: str) -> None:
        """Counts a failure without any run, such as of a plan."""
        with self._lock:
            self._failures.add((self._table(table), error))

    def tables(self, inside: int, outside: int) -> None:
        """Says how many tables are in policy, and how many are not."""
        with self._lock:
            self._policy.set(("inside",), inside)
            self._policy.set(("outside",), outside)

    def _table(self, name: str) -> str:
        shown = concealed(name)
        if shown not in self._tables and len(self._tables) >= MOST_TABLES:
            return OTHER
        self._tables.add(shown)
        return shown

    def text(self) -> str:
        """Returns all of them as Prometheus reads them."""
        with self._lock:
            self._lost.set((), self._dropped())
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        counted = (self._moves, self._failures, self._files, self._bytes, self._snapshots)
        for family in (*counted, self._success, self._policy, self._lost):
            yield from family.lines()
        yield from histogram_lines(self._seconds, SECONDS)
