"""What the Tab key offers: tables, runs, refs, holds and the values of options.

A shell waits for each answer, and shows nothing of an error: whatever cannot be read now is offered no one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.lake import Lake

MOST_TABLES = 64
"""Of a larger lake no table is opened to offer its runs: that would take longer than typing."""

Offers = list[str]


def fitting(known: Iterable[str], incomplete: str) -> Offers:
    return [each for each in known if each.startswith(incomplete)]


def values(*known: str) -> Callable[[str], Offers]:
    """Returns what completes an option with these values."""

    def complete(incomplete: str) -> Offers:
        return fitting(known, incomplete)

    return complete


def tables(ctx: Any, args: list[str], incomplete: str) -> Offers:
    """Returns the tables that may be meant: of the catalogs, or folders where a path is begun."""
    if "/" in incomplete or incomplete.startswith("."):
        return _folders(incomplete)
    return _safely(lambda: fitting(map(str, _lake(ctx).places.catalogs.readable()[0]), incomplete))


def _folders(incomplete: str) -> Offers:
    """Returns the folders that a path may go on with; each ends in a slash, so that the next Tab goes deeper."""
    folder, _, begun = incomplete.rpartition("/")
    try:
        inside = os.scandir(folder or ("/" if incomplete[:1] == "/" else "."))
        found = sorted(each.name for each in inside if each.is_dir())
    except OSError:
        return []
    before = f"{folder}/" if "/" in incomplete else ""
    return [f"{before}{name}/" for name in found if name.startswith(begun)]


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


def _safely(find: Callable[[], Offers]) -> Offers:
    try:
        return find()
    except FirnlineError:
        return []
