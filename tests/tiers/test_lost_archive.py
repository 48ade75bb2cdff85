"""What was handed over is lost or damaged before the live table may lose it: it is found, and nothing goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.errors import FirnlineError
from firnline.testing.faults import Died
from tests.tiers.cutting import Before, passing_through
from tests.tiers.lakes import TieredLake, tiered_lake

FULL = bool(os.environ.get("FIRNLINE_FULL"))
Damage = Callable[[Path], Any]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        made.append("t", 1)
        made.append("t", 2)
        made.overwrite("t", 7, 8)
        yield made


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, Damage] = {
    "flipped": _flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "emptied": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
}
KINDS = {"data": "**/data/*.parquet", "manifest": "**/metadata/*-m0.avro", "list": "**/metadata/snap-*.avro"}


def _some(lake: TieredLake, pattern: str) -> Path:
    return min(each for each in lake.cold_root.glob(pattern) if not each.name.startswith("."))


def _live_files(lake: TieredLake) -> set[Path]:
    folder = lake.folder / "warehouse"
    return {
        each for each in folder.rglob("*") if each.suffix in (".parquet", ".avro") and "_firnline" not in each.parts
    }


def _chosen(*ways: Iterable[str]) -> list[tuple[str, ...]]:
    """Returns all combinations; by default so many that each value is there."""
    every = [list(each) for each in ways]
    some = range(max(map(len, every)))
    return list(product(*every)) if FULL else [tuple(each[number % len(each)] for each in every) for number in some]


@pytest.mark.parametrize(("damage", "kind"), _chosen(DAMAGES, KINDS))
@pytest.mark.sampled(2)
def test_damage_after_the_commit_stops_the_purge(lake: TieredLake, damage: str, kind: str) -> None:
    before, files = lake.rows_by_snapshot("t"), _live_files(lake)
    run = _committed(lake)
    DAMAGES[damage](_some(lake, KINDS[kind]))
    with pytest.raises(FirnlineError):
        lake.firnline().purge(run)
    assert files <= _live_files(lake)
    assert lake.firnline().undo(run).state == "undone"
    assert lake.rows_by_snapshot("t") == before


DEATHS = {"archived": ("put_if_absent", "/events/000003"), "committing": ("commit", "catalog.db")}
"""The effect that a process dies before, by the state in which its run is then."""


@pytest.mark.parametrize(("damage", "kind", "state"), _chosen(DAMAGES, KINDS, DEATHS))
@pytest.mark.sampled(2)
def test_damage_before_the_commit_stops_it_or_is_mended(
    lake: TieredLake, monkeypatch: pytest.MonkeyPatch, damage: str, kind: str, state: str
) -> None:
    """The process died after its archive. Who goes on days later looks at all of it once more."""
    before, files = lake.rows_by_snapshot("t"), _live_files(lake)
    _die(lake, monkeypatch, state)
    DAMAGES[damage](_some(lake, KINDS[kind]))
    with suppress(FirnlineError):
        lake.firnline().resume("lake.db.t", break_lease=True)
    live = lake.rows_by_snapshot("t")
    if live == before:
        assert files <= _live_files(lake)
    else:
        assert damage == "gone", "only what is missing can be copied again: nothing in a tier is overwritten"
        assert lake.cold_rows("t") == {each: rows for each, rows in before.items() if each not in live}


def _die(lake: TieredLake, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """Leaves a run that is archived, and that no process has in hand."""

    def die() -> None:
        raise Died

    with pytest.raises(Died), passing_through(Before(*DEATHS[state], die), lake.folder, monkeypatch):
        lake.expire("t")
    assert [each.state for each in lake.firnline().runs("lake.db.t")] == [state]


def _committed(lake: TieredLake) -> str:
    """Returns a run that is committed, and that may be purged at once."""
    firnline = lake.firnline()
    run = firnline.plan("lake.db.t", save=True, older_than=now_ms(), retain_last=1, grace="0s").plan.run
    assert firnline.commit(str(run)).state == "committed"
    return str(run)


def _drop(lake: TieredLake) -> None:
    lake.cold.drop_table("db.t")


def _rename(lake: TieredLake) -> None:
    lake.cold.rename_table("db.t", "db.old")


def _replace(lake: TieredLake) -> None:
    lake.cold.drop_table("db.t")
    lake.cold.register_table("db.t", lake.table("t").metadata_location)


def _move(lake: TieredLake) -> None:
    lake.policy = lake.policy.replace("/colder", "/elsewhere")


def _forget(lake: TieredLake) -> None:
    lake.policy = ""


def _hide(lake: TieredLake) -> None:
    (lake.folder / "cold.db").rename(lake.folder / "hidden.db")


def _empty(lake: TieredLake) -> None:
    shutil.rmtree(lake.cold_root)


CHANGES = {each.__name__: each for each in (_drop, _rename, _replace, _move, _forget, _hide, _empty)}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", CHANGES)
def test_a_tier_that_is_another_one_stops_the_purge(lake: TieredLake, change: str) -> None:
    before, files = lake.rows_by_snapshot("t"), _live_files(lake)
    run = _committed(lake)
    CHANGES[change](lake)
    with pytest.raises(FirnlineError):
        lake.firnline().purge(run)
    assert files <= _live_files(lake)
    assert lake.firnline().undo(run).state == "undone"
    assert lake.rows_by_snapshot("t") == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("change", "state"), _chosen(CHANGES, DEATHS))
def test_a_tier_that_is_another_one_stops_the_commit(
    lake: TieredLake, monkeypatch: pytest.MonkeyPatch, change: str, state: str
) -> None:
    before, files = lake.rows_by_snapshot("t"), _live_files(lake)
    _die(lake, monkeypatch, state)
    CHANGES[change](lake)
    with suppress(FirnlineError):
        lake.firnline().resume("lake.db.t", break_lease=True)
    live = lake.rows_by_snapshot("t")
    if live == before:
        assert files <= _live_files(lake)
    else:  # it was handed over anew
        assert lake.cold_rows("t") == {each: rows for each, rows in before.items() if each not in live}
