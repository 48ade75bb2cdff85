"""Tables that an earlier Paimon wrote, with its own Java, and that Paimon of today goes on with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.paimon.gateway import Jvm, paimon_jvm
from harness.paimon.java_table import JavaTable
from harness.paimon.reader import walk
from harness.paimon.rows import Rows, java_rows
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon
from harness.servers.fixtures import NOT_HERE
from harness.servers.process import Missing

from .small import EVERYTHING_OLD, Copy, quick_folder, row

FULL = bool(os.environ.get("FIRNLINE_FULL"))
EARLIER = ("0.8.2", "0.8.0", "0.7.0-incubating") if FULL else ("0.8.2",)
STAYING = {"changelog.num-retained.min": "100", "changelog.num-retained.max": "200"}
SHAPES = {
    "changelogs": Shape("java", True, ("p",), {"bucket": "1", "changelog-producer": "input"}),
    "changelogs that stay": Shape("java", True, ("p",), {"bucket": "1", "changelog-producer": "input", **STAYING}),
    "dynamic buckets": Shape("java", True, ("p", "n"), {"bucket": "-1"}),
    "deletion vectors": Shape("java", True, (), {"bucket": "2", "deletion-vectors.enabled": "true"}),
    "no keys": Shape("java", False, ("p",), {"bucket": "-1"}),
    "other codec": Shape("java", True, (), {"bucket": "1", "manifest.compression": "zstd"}),
}
CHOSEN = SHAPES if FULL else {name: SHAPES[name] for name in ("changelogs that stay", "deletion vectors")}


class EarlierTable(JavaTable):
    """A table of a Paimon that has no word for the buckets of a table."""

    def compact(self, branch: str, full: bool) -> None:
        table = self.open(branch, {"write-only": "false", "snapshot.num-retained.min": "1000"})
        with self._writing(table) as write:
            for split in table.newSnapshotReader().read().dataSplits():
                write.compact(split.partition(), split.bucket(), full)
            self._commit(table, write)


@pytest.fixture(scope="module", params=EARLIER)
def earlier(request: pytest.FixtureRequest) -> Iterator[Jvm]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(paimon_jvm(request.param))
        except Missing as missing:
            pytest.skip(f"{NOT_HERE}{missing}")
        yield running


@pytest.fixture
def place() -> Iterator[Copy]:
    copy = Copy(quick_folder())
    yield copy
    copy.end()


def _written(earlier: Jvm, copy: Copy, shape: Shape) -> EarlierTable:
    """Returns a table of seven snapshots or more, two tags and a branch."""
    table = EarlierTable(earlier, copy.folder / "t")
    table.create(shape)
    table.write(MAIN, [row(1, "one"), row(2, "two")])
    table.write(MAIN, [row(2, "deux"), row(3, "three", "x")])
    table.tag(MAIN, "two", 2)
    table.create_branch("side", "two")
    if shape.buckets > 0:
        table.compact(MAIN, True)
    table.write(MAIN, [row(1, "uno")])
    if shape.buckets > 0:
        table.compact(MAIN, True)
    table.write(MAIN, [row(5, "five")], {})
    table.write(MAIN, [row(6, "six")])
    table.write(MAIN, [row(7, "seven")])
    return table


def _sizes(copy: Copy) -> dict[str, int]:
    return {path: Path(path).stat().st_size for path in walk(copy.folder / "t") if "/_firnline/" not in path}


def _garbage(copy: Copy) -> set[str]:
    return {path for path in copy.reader().orphans() if "/_firnline/" not in path}


def _rows(both: Paimon, copy: Copy) -> Rows:
    return java_rows(JavaTable(both.java, copy.folder / "t"))


def _undone_and_done(both: Paimon, copy: Copy) -> None:
    """Expires and undoes, then expires and purges; everything that stays is read as before."""
    assert copy.process().check(copy.table).sound
    rows, before, sizes = _rows(both, copy), copy.picture(), _sizes(copy)
    garbage = _garbage(copy)
    plan = copy.process().plan(copy.table, **EVERYTHING_OLD).to_json()
    assert plan["expire"]
    ended = copy.expire(grace="1m", sole_writer=False)
    copy.process().undo(str(ended.run.id))
    assert copy.picture().items() >= {path: each for path, each in before.items() if "/EARLIEST" not in path}.items()
    assert _rows(both, copy) == rows
    copy.expire()
    left = _rows(both, copy)
    assert left.items() <= rows.items()
    assert _garbage(copy) <= garbage
    assert not copy.missing()
    gone = {path: size for path, size in sizes.items() if not Path(path).exists() and "/snapshot/" not in path}
    assert (plan["victims"]["files"], plan["victims"]["bytes"]) == (len(gone), sum(gone.values()))
    assert copy.process().check(copy.table).sound


@pytest.mark.full
@pytest.mark.parametrize("shape", CHOSEN.values(), ids=CHOSEN.keys())
def test_a_table_of_an_earlier_paimon_is_expired_and_undone(
    both: Paimon, earlier: Jvm, place: Copy, shape: Shape
) -> None:
    _written(earlier, place, shape)
    _undone_and_done(both, place)


@pytest.mark.full
@pytest.mark.parametrize("shape", CHOSEN.values(), ids=CHOSEN.keys())
def test_so_is_one_that_paimon_of_today_went_on_with(both: Paimon, earlier: Jvm, place: Copy, shape: Shape) -> None:
    _written(earlier, place, shape)
    table = JavaTable(both.java, place.folder / "t")
    for number in range(3):
        table.write(MAIN, [row(number, "today")])
        table.compact(MAIN, True)
    table.compact_manifests(MAIN)
    table.write("side", [row(9, "nine")])
    table.write("side", [row(9, "again")], {})
    _undone_and_done(both, place)
