"""Manifests in every format and compression that Paimon's Java writes; what is not read is called so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon.table import PaimonFormat
from firnline.formats.paimon.tables import PaimonTables
from firnline.stores.objects import ObjectStores
from harness.paimon.java_table import JavaTable
from harness.paimon.reader import walk
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, Copy, quick_folder, row

AVRO = [{"manifest.format": "avro", "manifest.compression": name} for name in ("bzip2", "deflate", "null", "zstd")]
OTHERS = [{"manifest.format": "parquet"}, {"manifest.format": "orc"}]


@pytest.fixture
def place() -> Iterator[Copy]:
    copy = Copy(quick_folder())
    yield copy
    copy.end()


def _made(both: Paimon, copy: Copy, options: dict[str, str]) -> JavaTable:
    table = JavaTable(both.java, copy.folder / "t")
    table.create(Shape("java", True, ("p",), {"bucket": "1", "changelog-producer": "input", **options}))
    for number in range(5):
        table.write(MAIN, [row(number, "one"), row(1, f"again {number}")])
    table.compact(MAIN, True)
    table.write(MAIN, [row(9, "nine")])
    return table


@pytest.mark.parametrize("options", [*AVRO, *OTHERS], ids=lambda each: "-".join(each.values()))
@pytest.mark.sampled(1)
def test_every_way_of_writing_manifests_is_read(both: Paimon, place: Copy, options: dict[str, str]) -> None:
    table = _made(both, place, options)
    rows = sorted(table.rows.read(table.open()))
    assert place.process().check(place.table).sound
    needed = _sizes(place)
    plan = place.process().plan(place.table, **EVERYTHING_OLD).to_json()
    ended = place.expire()
    assert set(ended.outcomes) == {"deleted"}
    assert sorted(table.rows.read(table.open())) == rows
    gone = {path: size for path, size in needed.items() if not Path(path).exists() and "/snapshot/" not in path}
    assert plan["victims"]["files"] == len(gone)
    assert plan["victims"]["bytes"] == sum(gone.values())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", OTHERS, ids=lambda each: "-".join(each.values()))
def test_so_they_are_as_rows_of_sql(both: Paimon, place: Copy, options: dict[str, str]) -> None:
    _made(both, place, options)
    store = ObjectStores()
    tables, state = PaimonTables(store), PaimonFormat(store).load(place.table, place.table)
    units, reader = tables.units(state, state.current), tables.live(state, state.current)
    files = {
        path for unit in units for path in pc.struct_field(reader(unit).column("data_file"), "file_path").to_pylist()
    }
    assert files
    assert all(Path(path).exists() for path in files)


def _sizes(copy: Copy) -> dict[str, int]:
    return {path: Path(path).stat().st_size for path in walk(copy.folder / "t") if "/_firnline/" not in path}


def test_a_codec_that_is_not_read_is_called_so(both: Paimon, place: Copy) -> None:
    _made(both, place, {"manifest.compression": "deflate"})
    manifest = next(Path(place.table).glob("manifest/manifest-list-*"))
    manifest.write_bytes(manifest.read_bytes().replace(b"deflate", b"deflato", 1))
    before = place.picture()
    with pytest.raises(UnsupportedFormat, match="deflato") as caught:
        place.expire()
    assert "damaged" not in caught.value.message
    assert place.picture() == before
