"""Opening the lake for a command that a person watches and may stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from firnline.cli.terminal.process import stop_on_interrupt
from firnline.cli.terminal.progress import progress_for
from firnline.errors import UsageError

if TYPE_CHECKING:
    from firnline.app.several import Several
    from firnline.lake import Lake

_OPENED: ContextVar[Lake | None] = ContextVar("opened", default=None)


def lake_of(config: str | None, engine: str, as_json: bool, trust: Iterable[str] | None = None) -> Lake:
    from firnline.lake import open_lake

    lake = open_lake(
        config, engine=engine, progress=progress_for(as_json), interrupted=stop_on_interrupt(), trust=trust or ()
    )
    _OPENED.set(lake)
    return _for_one_command(lake)


def looking_lake(config: str | None, engine: str, as_json: bool, trust: Iterable[str] | None = None) -> Lake:
    """Returns the lake for a command that has no run: Ctrl-C ends it at once."""
    from firnline.lake import open_lake

    return _for_one_command(open_lake(config, engine=engine, progress=progress_for(as_json), trust=trust or ()))


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
