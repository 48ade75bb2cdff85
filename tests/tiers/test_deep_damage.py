"""Damage to bundles and their index, at any stage of a run: nothing is deleted that does not lie there whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from firnline.errors import ArchiveIncomplete, FirnlineError
from tests.tiers.deep_lakes import FORMAL, DeepLake, deep_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeepLake]:
    with deep_lake(tmp_path, monkeypatch) as made:
        for name in ("t", "u"):
            made.create(name)
            made.append(name, 1)
            made.append(name, 2)
            made.overwrite(name, 7, 8)
            made.expire(name)
        yield made


def _segments(lake: DeepLake, name: str = "t") -> list[Path]:
    uuid = lake.table(name).metadata.table_uuid
    return sorted((lake.deep_root / "_bundles" / str(uuid) / "index").glob("*"))


def _bundle(lake: DeepLake) -> Path:
    (segment, *_) = _segments(lake)
    return Path(pq.read_table(segment).column("bundle")[0].as_py().removeprefix("file://"))


def _written(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    _written(path, bytes(data))


def _cut_short(path: Path) -> None:
    _written(path, path.read_bytes()[:-700])


DAMAGES: dict[str, Callable[[Path], None]] = {"gone": Path.unlink, "cut short": _cut_short, "flipped": _flipped}


def _of_another_table(lake: DeepLake) -> None:
    """Puts the segment of another table's index in the place of this one's."""
    lake.expire_cold("u")
    (segment,) = _segments(lake)
    _written(segment, _segments(lake, "u")[0].read_bytes())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", [*DAMAGES, "another table's"])
def test_a_damaged_index_stops_the_purge(lake: DeepLake, damage: str) -> None:
    before = lake.cold_rows("t")
    run = str(lake.expire_cold("t", grace="1s").run.id)
    (segment,) = _segments(lake)
    if damage in DAMAGES:
        DAMAGES[damage](segment)
    else:
        _of_another_table(lake)
    time.sleep(1.2)  # until its grace is over
    with pytest.raises(FirnlineError) as refused:
        lake.firnline().purge(run)
    assert refused.value.hint
    lake.firnline().undo(run)
    assert lake.cold_rows("t") == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_bundle_that_is_damaged_before_the_commit_is_packed_again(lake: DeepLake, damage: str) -> None:
    """What was archived and not yet committed still lies in the cold table."""
    before = lake.cold_rows("t")
    lake.firnline().archive("cold.db.t")
    DAMAGES[damage](_bundle(lake))
    assert lake.expire_cold("t").state == "done"
    with lake.unpacked():
        found = {**lake.cold_rows("t"), **lake.deep_rows("t")}
    assert found == before
    for each in lake.deep_ids("t"):
        lake.firnline().restore("lake.db.t", str(each), to="cold", inquiry=FORMAL)
    assert lake.cold_rows("t") == before


@pytest.mark.full
def test_alien_files_beside_the_index_are_no_part_of_it(lake: DeepLake) -> None:
    lake.firnline().archive("cold.db.t")
    folder = _segments(lake)[0].parent
    (folder / "README.txt").write_text("do not touch")
    (folder / ".x.parquet.crc").write_bytes(b"crc")
    (folder / "sub.parquet").mkdir()
    (folder / "sub.parquet" / "x").write_bytes(b"x")
    assert lake.expire_cold("t").state == "done"


@pytest.mark.full
def test_an_alien_segment_stops_the_run(lake: DeepLake) -> None:
    lake.firnline().archive("cold.db.t")
    before = lake.cold_rows("t")
    (_segments(lake)[0].parent / "alien.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(FirnlineError, match="no index of bundles"):
        lake.expire_cold("t")
    assert lake.cold_rows("t") == before


def test_the_same_place_packed_with_other_bytes(lake: DeepLake) -> None:
    """A source that is not what was packed under its place is not deleted."""
    before = lake.cold_rows("t")
    lake.firnline().archive("cold.db.t")
    run = str(lake.expire_cold("t", grace="1s").run.id)
    row = pq.read_table(_segments(lake)[0]).to_pylist()[0]
    source = Path(row["place"].removeprefix(f"file://{lake.deep_root}"))
    whole = source.read_bytes()
    _flipped(source)
    time.sleep(1.2)  # until its grace is over
    with pytest.raises(ArchiveIncomplete):
        lake.firnline().purge(run)
    _written(source, whole)
    assert lake.firnline().purge(run).state == "done"
    with lake.unpacked():
        assert {**lake.cold_rows("t"), **lake.deep_rows("t")} == before
