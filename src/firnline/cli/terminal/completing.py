"""What the Tab key offers: tables, runs, refs, holds and the values of options.

A shell waits for each answer, in the middle of a prompt: whatever cannot be read now, or not soon, is offered no one,
and nothing is said of it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from firnline.model.names import written

if TYPE_CHECKING:
    from firnline.lake import Lake

MOST_TABLES = 64
"""Of a larger lake no table is opened to offer its runs: that would take longer than typing."""

STANDSTILL_S = 2.0
"""For how long nothing may happen: a server that hangs would hold the prompt for as long as a command may wait."""
_WORK_S, _LOOK_S = 0.05, 0.05
_READ_BY_BASH = re.compile(r"([^A-Za-z0-9_.,:/@%+=~-])")

Offers = list[str]


class _InBash(str):
    """An offer that bash puts into its line as it is, with signs escaped that it would read for itself. Other shells
    do that themselves.
    """

    def __format__(self, spec: str) -> str:
        return format(_READ_BY_BASH.sub(r"\\\1", self), spec)


def fitting(known: Iterable[str], incomplete: str) -> Offers:
    found = [each for each in known if each.startswith(incomplete)]
    return [*map(_InBash, found)] if "COMP_WORDS" in os.environ else found


def values(*known: str) -> Callable[[str], Offers]:
    """Returns what completes an option with these values."""

    def complete(incomplete: str) -> Offers:
        return fitting(known, incomplete)

    return complete


def tables(ctx: Any, args: list[str], incomplete: str) -> Offers:
    """Returns the tables that may be meant: of the catalogs, or folders where a path is begun."""
    if "/" in incomplete or incomplete.startswith("."):
        return _folders(incomplete)
    return _safely(lambda: fitting(_tables(_lake(ctx), incomplete), incomplete))


def _tables(lake: Lake, incomplete: str) -> Iterator[str]:
    """Yields the names of all tables; once a name is begun also without the catalog, where that may be left out."""
    found = lake.places.catalogs.readable()[0]
    yield from map(str, found)
    if incomplete and len(lake.catalogs) == 1:
        yield from (written((*each.namespace, each.name)) for each in found if each.namespace)


def _folders(incomplete: str) -> Offers:
    """Returns the folders that a path may go on with; each ends in a slash, so that the next Tab goes deeper."""
    folder = incomplete.rpartition("/")[0]
    try:
        inside = os.scandir(folder or ("/" if incomplete[:1] == "/" else "."))
        found = sorted(each.name for each in inside if each.is_dir())
    except OSError:
        return []
    before = f"{folder}/" if "/" in incomplete else ""
    return fitting((f"{before}{name}/" for name in found), incomplete)


def runs(ctx: Any, args: list[str], incomplete: str) -> Offers:
    """Returns the stamps of runs that have not ended; after TABLE@, those of all runs of that table."""
    return _safely(lambda: fitting(_runs(_lake(ctx), incomplete), incomplete))


def _runs(lake: Lake, incomplete: str) -> Iterator[str]:
    table, at, _ = incomplete.rpartition("@")
    if at:
        yield from (each.id for each in lake.runs(table))
        return
    several = lake.several()
    if several.by_lists or len(lake.places.catalogs.readable()[0]) <= MOST_TABLES:
        found = (status.run for each in several.runs() for status in each.value or ())
        yield from (run.id.stamp for run in found if not run.is_finished)


def runs_and_tables(ctx: Any, args: list[str], incomplete: str) -> Offers:
    return [*runs(ctx, args, incomplete), *tables(ctx, args, incomplete)]


def tags(ctx: Any, args: list[str], incomplete: str) -> Offers:
    """Returns the tags of the table that was named before."""
    return _of_table(ctx, incomplete, lambda lake, table: (each.ref.name for each in lake.tags(table)))


def refs(ctx: Any, args: list[str], incomplete: str) -> Offers:
    """Returns the refs of the table that was named before, and its snapshots."""

    def known(lake: Lake, table: str) -> Iterator[str]:
        state = lake.places.source(table).load()
        yield from state.refs
        yield from (each.id for each in state.graph)

    return _of_table(ctx, incomplete, known)


def holds(ctx: Any, args: list[str], incomplete: str) -> Offers:
    return _of_table(ctx, incomplete, lambda lake, table: (each.name for each in lake.holds(table)))


def _of_table(ctx: Any, incomplete: str, known: Callable[[Lake, str], Iterable[str]]) -> Offers:
    table = ctx.params.get("table")
    return _safely(lambda: fitting(known(_lake(ctx), table), incomplete)) if table else []


def _lake(ctx: Any) -> Lake:
    from firnline.lake import open_lake

    return open_lake(ctx.params.get("config"))


def commands(ctx: Any, args: list[str], incomplete: str) -> Offers:
    """Returns the commands that `help` can be asked about, inside of the group that was named before."""
    inside = ctx.parent.command
    for name in ctx.params.get("names") or ():
        inside = getattr(inside, "commands", {}).get(name)
    return fitting(getattr(inside, "commands", {}), incomplete)


def _safely(find: Callable[[], Offers]) -> Offers:
    """Returns what is found; nothing where it cannot be. Ends the process where nothing happens for a while: threads
    that wait for a server would hold it at its end, too.
    """
    found: Offers = []

    def look() -> None:
        with suppress(Exception):
            found.extend(find())

    looking = Thread(target=look, daemon=True)
    with ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        looking.start()
        if _stands_still(looking):
            os._exit(0)
    return found


def _stands_still(looking: Thread) -> bool:
    """Tells whether a thread neither ended nor worked for a while; waits for it. Loading libraries is work: that takes
    as long as the machine needs.
    """
    worked, since = time.process_time(), time.monotonic()
    while looking.is_alive() and time.monotonic() - since < STANDSTILL_S:
        looking.join(_LOOK_S)
        if time.process_time() - worked > _WORK_S:
            worked, since = time.process_time(), time.monotonic()
    return looking.is_alive()
