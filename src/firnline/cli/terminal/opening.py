"""Opening the lake for a command that a person watches and may stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from firnline.cli.terminal.manners import command_path
from firnline.cli.terminal.process import stop_on_interrupt
from firnline.cli.terminal.progress import progress_for
from firnline.errors import Interrupted, UsageError
from firnline.plans.pages import number

if TYPE_CHECKING:
    from firnline.app.several import Several
    from firnline.lake import Lake
    from firnline.plans.answers import TableAnswer
    from firnline.ports.progress import Progress

_OPENED: ContextVar[Lake | None] = ContextVar("opened", default=None)
_COUNTED: ContextVar[TablesDone | None] = ContextVar("counted", default=None)


class TablesDone:
    """Progress that also knows how many tables are done: a command that is stopped tells it."""

    def __init__(self, shown: Progress) -> None:
        self._shown, self.done, self.total = shown, 0, 0

    def step(self, what: str, done: int, total: int | None = None) -> None:
        if what == "tables":
            self.done, self.total = done, total or 0
        self._shown.step(what, done, total)


def lake_of(config: str | None, engine: str, as_json: bool, trust: Iterable[str] | None = None) -> Lake:
    from firnline.lake import open_lake

    counted, interrupted = _counted(as_json), stop_on_interrupt()
    lake = open_lake(config, engine=engine, progress=counted, interrupted=interrupted, trust=trust or ())
    _OPENED.set(lake)
    return _for_one_command(lake)


def looking_lake(config: str | None, engine: str, as_json: bool, trust: Iterable[str] | None = None) -> Lake:
    """Returns the lake for a command that has no run: Ctrl-C ends it at once."""
    from firnline.lake import open_lake

    return _for_one_command(open_lake(config, engine=engine, progress=_counted(as_json), trust=trust or ()))


def _counted(as_json: bool) -> TablesDone:
    counted = TablesDone(progress_for(as_json))
    _COUNTED.set(counted)
    return counted


def _for_one_command(lake: Lake) -> Lake:
    lake.places.engines.brief = True
    return lake


def several_of(lake: Lake, tables: Sequence[str] | None, at_once: int) -> Several:
    """Returns the tables that are named, or those of every catalog if None. Raises UsageError where there is none of
    those: nothing would be looked at, and nobody would know.
    """
    from firnline.ports.catalogs import HOW_TO_CONFIGURE

    if tables is None and not lake.catalogs:
        raise UsageError("no catalog is configured", hint=HOW_TO_CONFIGURE)
    return lake.several(tables, at_once=at_once)


def left_undone() -> bool:
    """Tells whether this command had begun to carry out a run: then there is something to be resumed."""
    lake = _OPENED.get()
    return lake is not None and lake.places.has_begun


def stopped_after(answers: Sequence[TableAnswer[Any]]) -> None:
    """Notes how many tables of a command are done, of which the others answer that a stop came before them."""
    counted = _COUNTED.get()
    if counted is not None and any(isinstance(each.problem, Interrupted) for each in answers):
        tables = [each for each in answers if not each.of_catalog]
        counted.done = sum(not isinstance(each.problem, Interrupted) for each in tables)
        counted.total = len(tables)


def what_was_stopped() -> str:
    """Returns which command was stopped, and how far it had come with several tables; nothing of one alone."""
    seen = _COUNTED.get()
    if seen is None or seen.total <= 1:
        return ""
    command = command_path().removeprefix("firnline ")
    return f"{command} was stopped, {number(seen.done)} of {number(seen.total)} tables are done"
