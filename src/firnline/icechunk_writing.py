"""For programs that write with the icechunk library: what to ask before a commit.

>>> from firnline.icechunk_writing import refuse_wrong_clock
>>> refuse_wrong_clock("s3://lake/weather")      # doctest: +SKIP
>>> session.commit("one more day")               # doctest: +SKIP
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from firnline.errors import RefusedForSafety
from firnline.model.times import format_duration, format_instant

__all__ = ["refuse_wrong_clock"]


def _machine_ms() -> int:
    return time.time_ns() // 1_000_000


def refuse_wrong_clock(
    location: str,
    branch: str = "main",
    settings: Mapping[str, str] | None = None,
    now: Callable[[], int] = _machine_ms,
) -> None:
    """Raises RefusedForSafety where a snapshot that this machine writes now would get a wrong time: its clock is more
    than five minutes off the store's, or the branch's newest snapshot says that it is no older.

    An expiry takes snapshots by these times: one of a slow clock goes too early, and what comes before one of a fast
    clock stays too long. `settings` say how the store is reached, by PyIceberg's names (`s3.endpoint`, …); without
    them it is reached as firnline's commands reach it. `now` is the clock that the program writes by, in milliseconds.

    An empty object is written under LOCATION/_firnline/clock and removed again: the store dates it. Raises NoSuchTable
    where there is no repository, UsageError where it has no such branch, StoreError where the store says no.
    """
    # Here and not above: a program that only might write pays for none of it.
    from firnline.app.catalogs import Catalogs, absolute
    from firnline.app.stores import Stores
    from firnline.formats.icechunk.reading.tip import branch_tip
    from firnline.journal.layout import records_root
    from firnline.ops.table.clocks import clock_at
    from firnline.policy.parse import Section
    from firnline.ports.catalogs import TableName

    place, stores = absolute(location), Stores(Section(), Catalogs())
    reached = stores.settings_of(TableName.at(place)) if settings is None else settings
    store = stores.open(reached)
    # Before anything is written: no empty folder is left where there is no repository.
    parent = branch_tip(store, place, branch)
    clock_at(store, records_root(place, "", None), now, stores.discard(reached))
    _refuse_older(parent.id, parent.flushed_us, now() * 1000)


def _refuse_older(parent: str, flushed_us: int, now_us: int) -> None:
    if now_us <= flushed_us:
        ahead = format_duration((flushed_us - now_us) // 1000)
        raise RefusedForSafety(
            f"a snapshot of {format_instant(now_us // 1000)} would be no younger than its parent {parent}, "
            f"which is {ahead} later",
            hint="wait until that has passed; `firnline check` names what else its writer's clock did",
        )
