"""Runs that are cut at every write: nothing is lost at any moment, and whoever comes next brings them to one end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from firnline.errors import FirnlineError
from firnline.testing.faults import Acting, CountingFault, Fault, When
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .cutting import FULL, cut_run, cut_undo
from .small import Copy, row


def expire(copy: Copy, fault: Fault | None) -> None:
    copy.expire(fault)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.full
def test_an_expiry_is_cut_at_every_write(made: Path, when: When) -> None:
    effects = cut_run(made, expire, when)
    assert any("/snapshot/snapshot-1" in key for _, key in effects)


@pytest.mark.full
def test_an_undo_is_cut_at_every_write(made: Path) -> None:
    cut_undo(made, lambda copy: str(copy.expire(grace="1h").run.id))


def _append(table: JavaTable) -> None:
    table.write(MAIN, [row(7, "seven")])


def _tag_the_oldest(table: JavaTable) -> None:
    table.tag(MAIN, "late", 1)


def _branch(table: JavaTable) -> None:
    table.create_branch("late", "two")


def _roll_back(table: JavaTable) -> None:
    table.rollback(MAIN, 5)


def _fast_forward(table: JavaTable) -> None:
    table.fast_forward("side")


ACTIONS = (_append, _tag_the_oldest, _branch, _roll_back, _fast_forward)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("action", ACTIONS)
def test_somebody_acts_between_any_two_steps(both: Paimon, made: Path, action: Callable[[JavaTable], None]) -> None:
    """Whatever happens between two requests, every snapshot, tag and branch that is there afterwards reads in full."""
    counting = CountingFault()
    copy = Copy.of(made, "counted")
    copy.expire(counting, sole_writer=False)
    copy.end()
    steps = counting.requests
    for at in range(2, steps, 1 if FULL else max(1, steps // 4)):
        copy = Copy.of(made, f"{action.__name__}-{at}")
        table = JavaTable(both.java, copy.folder / "t")
        acting = Acting(at, lambda table=table: _if_it_can(action, table))  # type: ignore[misc]
        with suppress(FirnlineError):
            copy.expire(acting, sole_writer=False)
        copy.clock.advance(61_000)
        copy.process().resume(copy.table)
        lost = {root: files for root, files in copy.missing().items() if not _is_changelog_of_a_tag(copy, root)}
        assert not lost, (acting.before, lost)
        assert copy.process().check(copy.table).sound
        copy.end()


def _if_it_can(action: Callable[[JavaTable], None], table: JavaTable) -> None:
    """Paimon refuses to tag or to roll back to what is gone already. Of a branch that it fails to make it leaves a
    folder without a schema, which nothing can read and firnline refuses: whoever sees it removes it.
    """
    with suppress(Py4JJavaError):
        action(table)
    half_made = table.folder / "branch" / "branch-late"
    if half_made.exists() and not (half_made / "schema").exists():
        shutil.rmtree(half_made)


def _is_changelog_of_a_tag(copy: Copy, root: str) -> bool:
    """Tells whether only a changelog is missing: of a snapshot that Paimon made out of a tag, after it had expired."""
    needs = next(each for found, each in copy.reader().reachable().items() if str(found) == root)
    return all(name.startswith("manifest-list") for name in needs.missing) and bool(needs.data)
