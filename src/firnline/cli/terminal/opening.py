"""Opening the lake for a command that a person watches and may stop."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from firnline.cli.terminal.process import stop_on_interrupt
from firnline.cli.terminal.progress import progress_for

if TYPE_CHECKING:
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


def left_undone() -> bool:
    """Tells whether this command had begun to carry out a run: then there is something to be resumed."""
    lake = _OPENED.get()
    return lake is not None and lake.places.has_begun
