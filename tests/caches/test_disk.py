"""Entries in packs: bounded, atomic, and never an error."""

from __future__ import annotations

import os
import pickle
import struct
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.caches import disk, packs
from firnline.caches.disk import LARGEST_ENTRY, DiskCache
from firnline.caches.seal import entry_name, shelf_of

FULL = bool(os.environ.get("FIRNLINE_FULL"))


def name(number: int) -> str:
    return entry_name((number,))


def put(cache: DiskCache, number: int, data: bytes, ttl_s: int = 60) -> None:
    """Puts one entry, on a shelf of its own."""
    cache.put(shelf_of(str(number)), [(name(number), data)], ttl_s)


def got(cache: DiskCache, number: int) -> bytes | None:
    (found,) = cache.get(shelf_of(str(number)), [name(number)])
    return found


def packs_of(folder: Path, number: int | str) -> list[Path]:
    shelf = shelf_of(str(number))
    return sorted((folder / shelf[:2] / shelf).glob("*.pack"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "units"


def test_what_was_put_is_there_for_every_process(folder: Path) -> None:
    cache = DiskCache(str(folder))
    assert got(cache, 1) is None
    put(cache, 1, b"one")
    put(cache, 1, b"another")
    assert got(pickle.loads(pickle.dumps(cache)), 1) == got(DiskCache(str(folder)), 1) == b"another"
    assert got(cache, 2) is None


def test_what_was_put_together_is_one_file(folder: Path) -> None:
    cache, shelf = DiskCache(str(folder)), shelf_of("of many")
    every = [(name(number), bytes([number % 251]) * (number % 7)) for number in range(1_000)]
    cache.put(shelf, every, 60)
    assert len(list(folder.rglob("*.pack"))) == 1
    asked = [*range(999, 400, -2), 5_000, 3, 3]
    found = cache.get(shelf, [name(number) for number in asked])
    assert found == [None if number == 5_000 else every[number][1] for number in asked]


@pytest.mark.parametrize("end", [pytest.param(0, id="over"), pytest.param(-1, id="long over")])
def test_an_entry_whose_time_is_over_is_a_miss(folder: Path, end: int) -> None:
    cache = DiskCache(str(folder))
    put(cache, 1, b"one", end)
    assert got(cache, 1) is None
    put(cache, 1, b"one")
    assert got(cache, 1) == b"one"


def test_an_entry_that_is_asked_for_does_not_live_longer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, now_s = DiskCache(str(folder)), time.time()
    for _ in range(3 * packs_at_once()):
        put(cache, 1, b"one")
    assert got(cache, 1) == b"one"
    monkeypatch.setattr(time, "time", lambda: now_s + 120)
    assert got(cache, 1) is None


def packs_at_once() -> int:
    from firnline.caches.disk import _MOST_SMALL

    return _MOST_SMALL


def test_many_small_packs_become_one_with_what_is_still_true(folder: Path) -> None:
    cache, shelf = DiskCache(str(folder)), shelf_of("of many")
    cache.put(shelf, [(name(99), b"over")], 0)
    for number in range(100):
        cache.put(shelf, [(name(number % 30), bytes([number])), (name(1_000 + number), b"x")], 60)
    assert len(list(folder.rglob("*.pack"))) <= packs_at_once()
    last = [bytes([max(each for each in range(100) if each % 30 == number)]) for number in range(30)]
    asked = [name(number) for number in [*range(30), *range(1_000, 1_100), 99]]
    for each in (cache, DiskCache(str(folder))):
        assert each.get(shelf, asked) == [*last, *[b"x"] * 100, None]


def _puts(folder: str, writer: int) -> bool:
    """Puts entries on one shelf beside other processes; tells whether each was never there, or as it was put."""
    cache, shelf = DiskCache(folder), shelf_of("of all")
    for number in range(60):
        cache.put(shelf, [(name(1_000 * writer + number), b"%d" % number)], 60)
        found = cache.get(shelf, [name(1_000 * writer + each) for each in range(number + 1)])
        if any(said not in (None, b"%d" % each) for each, said in enumerate(found)):
            return False
    return True


def test_processes_that_merge_side_by_side_lose_nothing(folder: Path) -> None:
    with get_context("spawn").Pool(4) as pool:
        assert all(pool.starmap(_puts, [(str(folder), writer) for writer in range(4)]))
    asked = [name(1_000 * writer + number) for writer in range(4) for number in range(60)]
    assert DiskCache(str(folder)).get(shelf_of("of all"), asked) == [b"%d" % number for number in range(60)] * 4


FOLDERS = count()
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 2), st.dictionaries(st.integers(0, 12), st.binary(max_size=40))),
        st.tuples(st.just("get"), st.integers(0, 2), st.lists(st.integers(0, 14))),
        st.tuples(st.just("prune"), st.just(0), st.just(())),
        st.tuples(st.just("again"), st.just(0), st.just(())),
    ),
    max_size=60,
)


@settings(max_examples=1_000 if FULL else 60, deadline=None)
@given(steps=STEPS)
def test_it_is_a_dictionary_of_each_shelf(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    place = str(tmp_path_factory.getbasetemp() / f"model-{next(FOLDERS)}")
    Path(place).mkdir()
    cache, model = DiskCache(place), dict[tuple[int, int], bytes]()
    for verb, shelf, said in steps:
        if verb == "put":
            cache.put(shelf_of(str(shelf)), [(name(each), data) for each, data in said.items()], 60)
            model |= {(shelf, each): data for each, data in said.items()}
        elif verb == "get":
            found = cache.get(shelf_of(str(shelf)), [name(each) for each in said])
            assert found == [model.get((shelf, each)) for each in said]
        elif verb == "prune":
            cache.prune()
        else:
            cache = DiskCache(place)


def test_what_was_put_last_counts_when_a_longer_pack_lies_between(folder: Path) -> None:
    """Small packs become one that is as new as the newest of them: no older entry may come before a newer one so."""
    cache, shelf = DiskCache(str(folder)), shelf_of("x")
    cache.put(shelf, [(name(1), b"old")], 60)
    cache.put(shelf, [(name(1), b"new"), (name(2), bytes(5 << 20))], 60)
    for number in range(2 * packs_at_once()):
        cache.put(shelf, [(name(100 + number), b"x")], 60)
    assert cache.get(shelf, [name(1), name(100)]) == [b"new", b"x"]
    assert len(packs_of(folder, "x")) < packs_at_once() + 2


def test_a_long_entry_that_is_put_again_and_again_takes_the_room_of_one(folder: Path) -> None:
    """Such as what is known of all tables of a large lake: it is put anew whenever one of them moved on."""
    cache = DiskCache(str(folder))
    for number in range(5):
        put(cache, 1, b"%d" % number + bytes(5 << 20))
    assert got(cache, 1) == b"4" + bytes(5 << 20)
    assert len(packs_of(folder, 1)) == 1
    cache.put(shelf_of("1"), [(name(2), b"two"), (name(1), b"short")], 60)
    put(cache, 1, bytes(5 << 20))
    assert cache.get(shelf_of("1"), [name(1), name(2)]) == [bytes(5 << 20), b"two"]


@pytest.mark.parametrize("puts", [1, 40])
def test_what_was_put_last_counts_although_the_clock_was_set_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    cache = DiskCache(str(folder))
    put(cache, 2, b"before")
    with monkeypatch.context() as wrong:
        ahead_s = time.time() + 3 * 3_600
        wrong.setattr(time, "time", lambda: ahead_s)
        wrong.setattr(time, "time_ns", lambda: int(ahead_s * 10**9))
        put(cache, 1, b"by a wrong clock")
    for _ in range(puts):
        put(cache, 1, b"since")
    assert got(cache, 1) == got(DiskCache(str(folder)), 1) == b"since"


def test_a_name_of_the_last_time_of_all_takes_no_entry_away(folder: Path) -> None:
    cache = DiskCache(str(folder))
    put(cache, 1, b"one")
    (pack,) = packs_of(folder, 1)
    pack.rename(pack.with_name(f"{'f' * 48}.pack"))
    for _ in range(2 * packs_at_once()):
        put(cache, 1, b"one")
    assert got(cache, 1) == b"one"
    assert len(list(folder.rglob("*.pack"))) <= packs_at_once()


# ---------------------------------------------------------------- what is not as it was put


@pytest.mark.parametrize("left", [0, 7, 23, 24, 40, -1])
def test_half_a_pack_is_none(folder: Path, left: int) -> None:
    put(DiskCache(str(folder)), 1, b"one")
    (pack,) = packs_of(folder, 1)
    pack.write_bytes(pack.read_bytes()[:left])
    assert got(DiskCache(str(folder)), 1) is None


@settings(max_examples=2_000 if FULL else 200, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7), cut=st.integers(0, 200))
def test_a_damaged_pack_is_no_error(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int, cut: int) -> None:
    """What it answers then no seal fits, which `test_lies.py` shows."""
    folder = tmp_path_factory.getbasetemp() / f"damaged-{next(FOLDERS)}"
    shelf = shelf_of("x")
    DiskCache(str(folder)).put(shelf, [(name(number), b"data of %d" % number) for number in range(20)], 60)
    (pack,) = folder.rglob("*.pack")
    data = bytearray(pack.read_bytes())
    data[place % len(data)] ^= 1 << bit
    pack.write_bytes(data[: len(data) - cut] if cut < 20 else bytes(data))
    found = DiskCache(str(folder)).get(shelf, [name(number) for number in range(20)])
    assert len(found) == 20


def test_a_pack_that_is_cut_while_it_is_read_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, pread = shelf_of("x"), os.pread
    DiskCache(str(folder)).put(shelf, [(name(number), b"data") for number in range(20)], 60)
    monkeypatch.setattr(os, "pread", lambda handle, length, start: pread(handle, min(length, 77), start))
    assert DiskCache(str(folder)).get(shelf, [name(number) for number in range(20)]) == [None] * 20


def _hostile() -> Iterator[bytes]:
    head = struct.Struct(">16sQ")
    mark = packs.packed([])[:16]
    yield head.pack(mark, 2**63)
    yield head.pack(mark, 2**64 - 1) + bytes(100)
    yield head.pack(mark, 1) + struct.pack(">QQI", packs.short(name(1)), 2**64 - 1, 2**32 - 1)
    yield head.pack(mark, 2) + struct.pack(">QQI", packs.short(name(1)), 2**64 - 1, 5) * 2 + bytes(5)
    yield head.pack(mark, 0)
    yield b"{}" * 100


@pytest.mark.parametrize("hostile", list(_hostile()))
def test_lengths_that_make_no_sense_are_those_of_no_pack(folder: Path, hostile: bytes) -> None:
    put(DiskCache(str(folder)), 1, b"one")
    (pack,) = packs_of(folder, 1)
    pack.write_bytes(hostile)
    cache = DiskCache(str(folder))
    assert got(cache, 1) is None
    for _ in range(2 * packs_at_once()):
        put(cache, 1, b"again")
    assert got(cache, 1) == b"again"
    assert not pack.exists(), "it went when its shelf became one pack"


def test_a_hole_in_a_file_takes_no_memory(folder: Path) -> None:
    put(DiskCache(str(folder)), 1, b"one")
    (pack,) = packs_of(folder, 1)
    pack.write_bytes(struct.pack(">16sQ", pack.read_bytes()[:16], 1 << 36))
    os.truncate(pack, 1 << 42)
    cache = DiskCache(str(folder))
    assert got(cache, 1) is None
    for _ in range(2 * packs_at_once()):
        put(cache, 1, b"again")
    assert got(cache, 1) == b"again"


def test_rows_without_entries_take_no_memory_for_good(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of nothing but a hole costs its maker a block, however many rows it says it has."""
    monkeypatch.setattr(disk, "_MOST_KNOWN_ROWS", 50_000)
    cache, shelf = DiskCache(str(folder)), shelf_of("x")
    cache.put(shelf, [(name(1), b"one")], 60)
    (pack,) = packs_of(folder, "x")
    for number, rows in enumerate([1_000_000, *[20_000] * 10]):
        path = pack.with_name(f"{number:048x}.pack")
        path.write_bytes(struct.pack(">16sQ", pack.read_bytes()[:16], rows))
        os.truncate(path, 24 + 20 * rows)
    assert cache.get(shelf, [name(1), name(2)]) == [b"one", None]
    assert sum(len(each.names) for each in cache._known.values()) <= 50_000
    assert cache.get(shelf, [name(1), name(2)]) == [b"one", None]


def test_what_does_not_fit_into_a_pack_is_not_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LONGEST_PACK", 1_000)
    cache, shelf = DiskCache(str(folder)), shelf_of("x")
    cache.put(shelf, [(name(number), bytes(300)) for number in range(10)], 60)
    found = cache.get(shelf, [name(number) for number in range(10)])
    assert found == [bytes(300)] * 3 + [None] * 7


def test_nobody_else_may_read_entries(folder: Path) -> None:
    put(DiskCache(str(folder)), 1, b"one")
    (pack,) = packs_of(folder, 1)
    assert pack.stat().st_mode & 0o077 == 0


# ---------------------------------------------------------------- room


def test_the_least_used_go_when_there_are_too_many(folder: Path) -> None:
    cache = DiskCache(str(folder), limit_bytes=10_000)
    now = time.time()
    for number in range(9):
        put(cache, number, bytes(1_000))
        used = now - 10 * 86_400 + number
        os.utime(packs_of(folder, number)[0], (used, used))
    assert got(cache, 0) is not None, "asked for, so used now"
    for number in range(9, 14):
        put(cache, number, bytes(1_000))
    left = {number for number in range(14) if got(cache, number) is not None}
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 10_000
    assert {0, 13} <= left
    assert left.isdisjoint({1, 2, 3, 4})


@pytest.mark.parametrize("days", [pytest.param(-2, id="two days ago"), pytest.param(365, id="by a wrong clock")])
def test_many_short_runs_are_bounded_too(folder: Path, days: int) -> None:
    put(DiskCache(str(folder), limit_bytes=10_000), 0, b"x")
    for number in range(1, 40):
        put(DiskCache(str(folder), limit_bytes=10_000), number, bytes(450))
    looked = time.time() + days * 86_400
    os.utime(folder / "pruned", (looked, looked))
    put(DiskCache(str(folder), limit_bytes=10_000), 99, b"x")
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 10_000


def test_what_nobody_asked_for_in_a_month_goes_although_there_is_room(folder: Path) -> None:
    cache = DiskCache(str(folder))
    for number, days in enumerate((31, 29, 40)):
        put(cache, number, b"x")
        used = time.time() - days * 86_400
        os.utime(packs_of(folder, number)[0], (used, used))
    assert got(cache, 2) == b"x", "asked for, so used now"
    cache.prune()
    assert [got(cache, number) for number in range(3)] == [None, b"x", b"x"]
    assert not (folder / shelf_of("0")[:2] / shelf_of("0")).exists(), "nor does its shelf stay"


def test_what_a_crash_left_unfinished_is_no_entry_and_goes(folder: Path) -> None:
    cache = DiskCache(str(folder), limit_bytes=1_000)
    put(cache, 1, b"one")
    half = packs_of(folder, 1)[0].parent / f".{uuid4().hex}"
    half.write_bytes(bytes(2_000))
    os.utime(half, (0, 0))
    cache.prune()
    assert not half.exists()
    assert got(cache, 1) == b"one"


def test_a_shelf_that_cannot_be_listed_keeps_no_other_from_making_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another user's, in a folder for several; or it went just now, when another process made room."""
    cache = DiskCache(str(folder), limit_bytes=10_000)
    put(cache, 0, b"another user's")
    theirs, scandir = str(packs_of(folder, 0)[0].parent), os.scandir

    def refused(path: str) -> Any:
        if path == theirs:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    for number in range(1, 40):
        put(cache, number, bytes(1_000))
    monkeypatch.undo()
    assert sum(path.stat().st_size for path in folder.rglob("*.pack")) <= 11_000


def test_a_link_to_nowhere_that_is_named_as_a_pack_keeps_no_other_from_becoming_one(folder: Path) -> None:
    cache = DiskCache(str(folder), limit_bytes=10_000)
    put(cache, 0, b"x")
    link = packs_of(folder, 0)[0].with_name(f"{'0' * 47}1.pack")
    link.symlink_to("/nowhere/at/all")
    for _ in range(200):
        put(cache, 0, bytes(100))
    assert len(packs_of(folder, 0)) <= packs_at_once()
    assert not link.is_symlink()


def test_what_has_another_name_than_a_pack_is_not_removed(folder: Path) -> None:
    """Somebody's files may lie where the cache was told to be: in folders that are named as shelves are, too."""
    shelf = shelf_of("0")
    theirs = [
        folder / inner / each
        for inner in ("ab", "de", "zz", "us", f"{shelf[:2]}/{shelf}")
        for each in ("report.pdf", ".hidden", "0" * 64, "0" * 48, f"{'0' * 47}.pack", f"{'0' * 32}/x.pack")
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1_000))
        os.utime(path, (0, 0))
    cache = DiskCache(str(folder), limit_bytes=2_000)
    for number in range(8):
        put(cache, number, bytes(900))
    cache.prune()
    assert [path for path in theirs if not path.exists()] == []
    assert sum(path.stat().st_size for path in folder.rglob("*.pack") if path not in theirs) <= 2_000


def test_a_path_that_is_no_plain_file_is_a_miss(folder: Path) -> None:
    cache = DiskCache(str(folder))
    for number, make in enumerate((os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/hostname", path))):
        put(cache, number, b"x")
        (pack,) = packs_of(folder, number)
        pack.unlink()
        make(pack)
        assert got(DiskCache(str(folder)), number) is None
        put(cache, number, b"y")
        assert got(cache, number) == b"y"


def test_a_giant_is_not_put_and_takes_no_other_with_it(folder: Path) -> None:
    cache, shelf = DiskCache(str(folder)), shelf_of("x")
    cache.put(shelf, [(name(1), bytes(LARGEST_ENTRY + 1)), (name(2), b"two")], 60)
    assert cache.get(shelf, [name(1), name(2)]) == [None, b"two"]


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing/here")):
        cache = DiskCache(str(place))
        put(cache, 1, b"one")
        assert got(cache, 1) is None
