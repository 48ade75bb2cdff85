"""Entries as files: bounded, atomic, and never an error."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from uuid import uuid4

import pytest

from firnline.caches.disk import LARGEST_ENTRY, DiskCache


def name(number: int) -> str:
    return f"{number:064x}"[::-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "units"


def test_what_was_put_is_there_for_every_process(folder: Path) -> None:
    cache = DiskCache(str(folder))
    assert cache.get(name(1)) is None
    cache.put(name(1), b"one", 60)
    cache.put(name(1), b"another", 60)
    assert pickle.loads(pickle.dumps(cache)).get(name(1)) == b"another"
    assert cache.get(name(2)) is None


@pytest.mark.parametrize("end", [pytest.param(0, id="over"), pytest.param(-1, id="long over")])
def test_an_entry_whose_time_is_over_is_a_miss(folder: Path, end: int) -> None:
    cache = DiskCache(str(folder))
    cache.put(name(1), b"one", end)
    assert cache.get(name(1)) is None
    cache.put(name(1), b"one", 60)
    assert cache.get(name(1)) == b"one"


def test_an_entry_that_is_asked_for_does_not_live_longer(folder: Path) -> None:
    cache = DiskCache(str(folder))
    cache.put(name(1), b"one", 60)
    entry = next(folder.rglob(name(1)))
    over = (int(time.time()) - 1).to_bytes(8, "big")
    assert cache.get(name(1)) == b"one"
    entry.write_bytes(over + entry.read_bytes()[8:])
    assert cache.get(name(1)) is None


@pytest.mark.parametrize("left", [0, 7, 8])
def test_half_an_entry_is_a_miss_or_what_no_seal_fits(folder: Path, left: int) -> None:
    cache = DiskCache(str(folder))
    cache.put(name(1), b"one", 60)
    entry = next(folder.rglob(name(1)))
    entry.write_bytes(entry.read_bytes()[:left])
    assert not cache.get(name(1))


def test_nobody_else_may_read_entries(folder: Path) -> None:
    DiskCache(str(folder)).put(name(1), b"one", 60)
    (entry,) = [path for path in folder.rglob("*") if path.name == name(1)]
    assert entry.stat().st_mode & 0o077 == 0


def test_the_least_used_go_when_there_are_too_many(folder: Path) -> None:
    cache = DiskCache(str(folder), limit_bytes=10_000)
    now = time.time()
    for number in range(9):
        cache.put(name(number), bytes(1_000), 60)
        used = now - 10 * 86_400 + number
        os.utime(next(folder.rglob(name(number))), (used, used))
    assert cache.get(name(0)) is not None, "asked for, so used now"
    for number in range(9, 14):
        cache.put(name(number), bytes(1_000), 60)
    left = {number for number in range(14) if cache.get(name(number)) is not None}
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 10_000
    assert {0, 13} <= left
    assert left.isdisjoint({1, 2, 3, 4})


def test_many_short_runs_are_bounded_too(folder: Path) -> None:
    DiskCache(str(folder), limit_bytes=10_000).put(name(0), b"x", 60)
    for number in range(1, 40):
        DiskCache(str(folder), limit_bytes=10_000).put(name(number), bytes(499), 60)
    yesterday = time.time() - 2 * 86_400
    os.utime(folder / "pruned", (yesterday, yesterday))
    DiskCache(str(folder), limit_bytes=10_000).put(name(99), b"x", 60)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 10_000


def test_what_nobody_asked_for_in_a_month_goes_although_there_is_room(folder: Path) -> None:
    cache = DiskCache(str(folder))
    for number, days in enumerate((31, 29, 40)):
        cache.put(name(number), b"x", 60)
        used = time.time() - days * 86_400
        os.utime(next(folder.rglob(name(number))), (used, used))
    assert cache.get(name(2)) == b"x", "asked for, so used now"
    cache.prune()
    assert [cache.get(name(number)) for number in range(3)] == [None, b"x", b"x"]


def test_what_a_crash_left_unfinished_is_no_entry_and_goes(folder: Path) -> None:
    cache = DiskCache(str(folder), limit_bytes=1_000)
    cache.put(name(1), b"one", 60)
    half = next(folder.rglob(name(1))).parent / f".{uuid4().hex}"
    half.write_bytes(bytes(2_000))
    os.utime(half, (0, 0))
    cache.prune()
    assert not half.exists()
    assert cache.get(name(1)) == b"one"


def test_what_has_another_name_than_an_entry_is_not_removed(folder: Path) -> None:
    """Somebody's files may lie where the cache was told to be: in folders of two letters, too."""
    theirs = [
        folder / inner / each
        for inner in ("ab", "de", "zz", "us")
        for each in ("report.pdf", ".hidden", "0" * 63, "0" * 64, f"{inner}.parquet", "data/x.bin")
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1_000))
        os.utime(path, (0, 0))
    cache = DiskCache(str(folder), limit_bytes=2_000)
    for number in range(8):
        cache.put(name(number), bytes(900), 60)
    cache.prune()
    assert [path for path in theirs if not path.exists()] == []
    assert (
        sum(path.stat().st_size for path in folder.rglob("*") if len(path.name) == 64 and path not in theirs) <= 2_000
    )


def test_a_path_that_is_no_plain_file_is_a_miss(folder: Path) -> None:
    cache = DiskCache(str(folder))
    for number, make in enumerate((os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/hostname", path))):
        path = folder / name(number)[:2] / name(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        assert cache.get(name(number)) is None


def test_a_giant_is_a_miss_and_is_not_put(folder: Path) -> None:
    cache = DiskCache(str(folder))
    path = folder / name(1)[:2] / name(1)
    path.parent.mkdir(parents=True)
    path.touch()
    os.truncate(path, LARGEST_ENTRY + 1)
    assert cache.get(name(1)) is None
    cache.put(name(2), bytes(LARGEST_ENTRY + 1), 60)
    assert cache.get(name(2)) is None


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing/here")):
        cache = DiskCache(str(place))
        cache.put(name(1), b"one", 60)
        assert cache.get(name(1)) is None
