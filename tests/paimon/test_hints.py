"""Whatever the hints said before: Paimon's own Java opens every branch afterwards, at its newest snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from firnline.testing.faults import Answer, BothFaults, PortRequest
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row, seen_by_java
from .test_interference import Before

HINTS = {
    "absent": None,
    "far ahead": b"99",
    "just ahead": b"8",
    "the one before": b"6",
    "of the middle": b"2",
    "the first": b"1",
    "nothing": b"0",
    "garbage": b"snapshot",
    "empty": b"",
    "in two lines": b"1\n2",
    "negative": b"-1",
    "with a sign": b"+2",
    "with zeros": b"0002",
    "with a line's end": b"2\n",
    "other digits": "٢".encode(),
    "the largest": b"9223372036854775807",
    "too large": b"123456789012345678901234567890",
    "no text": b"\xff\xfe\x00",
}


def lie(folder: Path, name: str, said: bytes | None) -> None:
    hint = folder / "snapshot" / name
    hint.unlink(missing_ok=True)
    if said is not None:
        hint.write_bytes(said)


def rows_of_java(both: Paimon, copy: Copy, branch: str = MAIN) -> list[Any]:
    return seen_by_java(both, copy, branch)[2]


def is_misled(both: Paimon, copy: Copy, branch: str = MAIN) -> bool:
    try:
        newest, _, _ = seen_by_java(both, copy, branch)
    except Py4JJavaError:
        return True
    return newest != max(layout.snapshots(copy.folder / "t", branch))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("said", HINTS.values(), ids=list(HINTS))
@pytest.mark.parametrize("name", ["LATEST", "EARLIEST"])
def test_java_reads_after_an_expiry_whatever_a_hint_said(
    both: Paimon, made: Path, copy: Copy, name: str, said: bytes | None
) -> None:
    rows = rows_of_java(both, Copy(made))
    lie(copy.folder / "t", name, said)
    copy.expire()
    assert seen_by_java(both, copy) == (7, 6, rows)
    assert copy.process().check(copy.table).sound


@pytest.mark.sampled(2)
@pytest.mark.parametrize("said", HINTS.values(), ids=list(HINTS))
def test_java_reads_a_branch_after_an_expiry_whatever_its_hint_said(
    both: Paimon, copy: Copy, said: bytes | None
) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    for number in range(10, 15):
        table.write("side", [row(number, "more")])
    rows = rows_of_java(both, copy, "side")
    lie(copy.folder / "t/branch/branch-side", "LATEST", said)
    copy.expire()
    first, newest = (pick(layout.snapshots(copy.folder / "t", "side")) for pick in (min, max))
    assert seen_by_java(both, copy, "side") == (newest, first, rows)
    assert copy.process().check(copy.table).sound


@pytest.mark.sampled(6)
@pytest.mark.parametrize("said", HINTS.values(), ids=list(HINTS))
@pytest.mark.parametrize("branch", [MAIN, "side"])
def test_check_tells_just_the_hints_that_mislead_java(
    both: Paimon, copy: Copy, branch: str, said: bytes | None
) -> None:
    folder = layout.branch_folder(copy.folder / "t", branch)
    lie(folder, "LATEST", said)
    checked = copy.process().check(copy.table)
    assert checked.sound == (not is_misled(both, copy, branch))
    if not checked.sound:
        assert [(each.path, each.kind) for each in checked.presence.listed] == [(f"{folder}/snapshot/LATEST", "hint")]


@pytest.mark.parametrize("said", [b"1", b"3", b"5", b"7"])
def test_check_tells_a_hint_that_a_hole_makes_believable(both: Paimon, copy: Copy, said: bytes) -> None:
    """Java takes 3 for the newest where there is no 4, and would give that number to its next commit."""
    (copy.folder / "t/snapshot/snapshot-4").unlink()
    lie(copy.folder / "t", "LATEST", said)
    checked = copy.process().check(copy.table)
    assert checked.sound == (said != b"3") == (not is_misled(both, copy))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("said", [b"2", b"99"])
def test_an_undo_leaves_a_table_that_java_reads(both: Paimon, made: Path, copy: Copy, said: bytes) -> None:
    rows = rows_of_java(both, Copy(made))
    run = str(copy.expire(grace="1m").run.id)
    lie(copy.folder / "t", "LATEST", said)
    copy.process().undo(run)
    assert seen_by_java(both, copy) == (7, 1, rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cut", ["delete", "put"])
def test_a_rollback_while_a_lying_hint_is_mended_is_not_hidden(both: Paimon, copy: Copy, cut: str) -> None:
    """The hint is written from what is there, and looked at again: not from what was there when the commit began."""
    table = JavaTable(both.java, copy.folder / "t")
    lie(copy.folder / "t", "LATEST", b"2")
    name = "snapshot-1" if cut == "delete" else "LATEST"
    acting = Before(cut, name, lambda: table.rollback(MAIN, 5))
    copy.expire(acting, sole_writer=False)
    assert acting.acted
    assert not is_misled(both, copy)
    assert max(layout.snapshots(copy.folder / "t", MAIN)) == 5


def test_a_rollback_that_lasts_longer_than_the_mending_of_a_hint_is_not_hidden(both: Paimon, copy: Copy) -> None:
    """Java's rollback writes the hint first and removes snapshots then: the look after our write came between."""
    folder = copy.folder / "t/snapshot"
    lie(copy.folder / "t", "LATEST", b"2")
    began = Before("put", "LATEST", lambda: (folder / "LATEST").write_text("6"))
    went_on = Before("delete", "/snapshot-1", (folder / "snapshot-7").unlink)
    copy.expire(BothFaults(began, went_on), sole_writer=False, retain_last=3)
    assert began.acted
    assert went_on.acted
    assert layout.snapshots(copy.folder / "t", MAIN)[-1] == 6
    assert not is_misled(both, copy)


def test_a_commit_on_top_while_a_lying_hint_is_mended_is_found(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    lie(copy.folder / "t", "LATEST", b"2")
    acting = Before("put", "LATEST", lambda: table.write(MAIN, [row(20, "late")]))
    copy.expire(acting, sole_writer=False)
    assert acting.acted
    assert (copy.folder / "t/snapshot/LATEST").read_text() == "8"
    assert seen_by_java(both, copy)[0] == 8


@dataclass
class AtEachDelete:
    """Looks just before each snapshot of the main branch goes: a crash there leaves what it sees."""

    look: Callable[[], bool]
    seen: list[bool] = field(default_factory=list)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "delete" and "/t/snapshot/snapshot-" in request.key:
            self.seen.append(self.look())
        return request.send()


def test_the_hint_is_right_before_the_first_snapshot_goes(both: Paimon, copy: Copy) -> None:
    lie(copy.folder / "t", "LATEST", b"2")
    watching = AtEachDelete(lambda: is_misled(both, copy))
    copy.expire(watching)
    assert watching.seen == [False] * 5
