"""Runs on a Paimon table that are cut at every write, and carried to their end by whoever comes next."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from firnline.errors import FirnlineError
from firnline.testing.faults import CountingFault, Died, Dying, Fault, When

from .small import Copy

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OF_THE_COMMIT = (
    "/snapshot/", "/tag/", "/changelog/", "/consumer/", "/branch/", "/commits/", "properties.json",
)  # fmt: skip
WHEN: tuple[When, ...] = ("before", "after") if FULL else ("before",)
"""A death after one effect leaves what a death before the next one leaves: the short count has one of them."""

Act = Callable[[Copy, Fault | None], object]


def chosen(effects: list[tuple[str, str]], every: int) -> list[int]:
    """Returns which effects are cut: a third of those that change the table's metadata, the first and the last among
    them, and of the others every n-th; all of them at the long count.
    """
    numbered = range(1, len(effects) + 1)
    if FULL:
        return list(numbered)
    of_the_commit = [at for at in numbered if any(each in effects[at - 1][1] for each in OF_THE_COMMIT)]
    taken = {*of_the_commit[::3], *of_the_commit[-1:]}
    return [at for at in numbered if at % every == 0 or at in taken]


def uncut(made: Path, act: Act) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    copy, counting = Copy.of(made, "uncut"), CountingFault()
    act(copy, counting)
    picture = copy.picture()
    copy.end()
    return picture, [each for each in counting.trace if CountingFault([each]).effects]


def cut_run(made: Path, act: Act, when: When, every: int = 9) -> list[tuple[str, str]]:
    """Returns what was cut. Whatever the cut, nothing is missing at any moment, and the end is that of no cut."""
    picture, effects = uncut(made, act)
    for at in chosen(effects, every):
        copy, fault = Copy.of(made, at), Dying(at, when=when)
        with suppress(Died, FirnlineError):
            act(copy, fault)
        assert fault.dead
        assert not copy.missing(), effects[at - 1]
        copy.wait_for_lease()
        copy.process().resume(copy.table)
        if copy.picture() != picture:  # it died before it was a run at all
            act(copy, None)
        assert copy.picture() == picture, effects[at - 1]
        assert not copy.missing()
        copy.end()
    return effects


def cut_undo(made: Path, committed: Callable[[Copy], str], every: int = 5) -> list[tuple[str, str]]:
    """Returns what was cut of the undo of a run. In the end the table is as it was before the run."""

    def act(copy: Copy, fault: Fault | None) -> None:
        run = committed(copy)
        copy.process(fault).undo(run)

    picture, effects = uncut(made, act)
    assert picture == Copy(made).picture()
    for at in chosen(effects, every):
        copy, fault = Copy.of(made, at), Dying(at)
        with suppress(Died, FirnlineError):
            act(copy, fault)
        assert fault.dead
        assert not copy.missing(), effects[at - 1]
        copy.wait_for_lease()
        for each in copy.process().runs(copy.table):
            if not each.run.is_finished:
                copy.process().undo(str(each.run.id))
        assert copy.picture() == picture, effects[at - 1]
        copy.end()
    return effects
