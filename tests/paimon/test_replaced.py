"""Tables that were replaced and kept their history: each file lies where the schema says that it was written with.

Paimon 2 replaces a table by removing its rows in a commit and writing a schema that has nothing to do with the one
before. Here Paimon 1.4 does the same two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import PaimonRoot
from harness.paimon.rows import Rows, java_rows, readable
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .aged import MEANT, age, disk
from .small import EVERYTHING_OLD, Copy, quick_folder, row

VECTORS = {"deletion-vectors.enabled": "true"}
BEFORE = Shape("java", True, ("p",), {"bucket": "1"})
PAIRS = {
    "other keys": (BEFORE, Shape("java", True, ("d", "p"), {"bucket": "1"})),
    "no keys": (BEFORE, Shape("java", True, (), {"bucket": "1"})),
    "one key for another": (BEFORE, Shape("java", True, ("n",), {"bucket": "1"})),
    "folders named otherwise": (
        Shape("java", True, ("d",), {"bucket": "1"}),
        Shape("java", True, ("d",), {"bucket": "1", "partition.legacy-name": "false"}),
    ),
    "another folder": (BEFORE, Shape("java", True, ("p",), {"bucket": "1", "data-file.path-directory": "rows"})),
    "indexes elsewhere": (
        Shape("java", True, ("p",), {"bucket": "1", **VECTORS}),
        Shape("java", True, ("p",), {"bucket": "1", **VECTORS, "index-file-in-data-file-dir": "true"}),
    ),
}


@pytest.fixture
def place() -> Iterator[Copy]:
    copy = Copy(quick_folder())
    yield copy
    copy.end()


def _some(table: JavaTable) -> None:
    for number in range(2):
        table.write(MAIN, [row(number, "once", "x"), row(3, f"again {number}", "x")])
        table.compact(MAIN, True)
    table.write(MAIN, [row(3, "at last", "x")])
    table.compact(MAIN, False)


def _replace(both: Paimon, table: JavaTable, shape: Shape) -> None:
    table.truncate(MAIN)
    other = JavaTable(both.java, table.folder.with_name("other"))
    other.create(shape)
    made = both.java.paimon("schema.TableSchema")
    schemas = table.open().schemaManager()
    like = other.open().schema()
    number = schemas.latest().get().id() + 1
    options, comment = like.options(), like.comment()
    keys = like.partitionKeys(), like.primaryKeys()
    assert schemas.commit(made(number, like.fields(), like.highestFieldId(), *keys, options, comment))


def _rows(both: Paimon, copy: Copy) -> Rows:
    """Returns the rows of every root that Paimon can still read: it reads old snapshots with the newest options."""
    table = JavaTable(both.java, copy.folder / "t")
    newest = PaimonRoot(MAIN, layout.SNAPSHOT, str(max(layout.snapshots(table.folder, MAIN))))
    roots = [root for root in readable(table.folder) if _options(copy, root) == _options(copy, newest)]
    return java_rows(table, roots)


def _options(copy: Copy, root: PaimonRoot) -> dict[str, str]:
    folder = Path(copy.table)
    number = layout.document(root.path(folder))["schemaId"]
    found: dict[str, str] = layout.document(folder / f"schema/schema-{number}")["options"]
    return found


@pytest.fixture(params=PAIRS)
def replaced(both: Paimon, place: Copy, request: pytest.FixtureRequest) -> Copy:
    """A table with rows, a tag on them, and rows of another schema in their place."""
    earlier, later = PAIRS[request.param]
    table = JavaTable(both.java, place.folder / "t")
    table.create(earlier)
    _some(table)
    table.tag(MAIN, "earlier", max(layout.snapshots(place.folder / "t", MAIN)))
    _replace(both, table, later)
    _some(table)
    table.compact_manifests(MAIN)
    table.write(MAIN, [row(9, "nine", "x")])
    return place


@pytest.mark.sampled(1)
def test_every_file_is_found_where_its_schema_puts_it(both: Paimon, replaced: Copy) -> None:
    rows = _rows(both, replaced)
    assert replaced.process().check(replaced.table).sound
    before = replaced.picture()
    ended = replaced.expire(grace="1m", sole_writer=False)
    replaced.process().undo(str(ended.run.id))
    assert replaced.picture().items() >= {path: each for path, each in before.items() if "EARLIEST" not in path}.items()
    assert _rows(both, replaced) == rows


@pytest.mark.sampled(1)
def test_what_only_expired_snapshots_held_goes(both: Paimon, replaced: Copy) -> None:
    rows, there = _rows(both, replaced), disk(Path(replaced.table))
    plan = replaced.process().plan(replaced.table, **EVERYTHING_OLD).to_json()
    ended = replaced.expire()
    assert set(ended.outcomes) == {"deleted"}
    gone = there - disk(Path(replaced.table))
    assert len({path for path in gone if "/snapshot/" not in path}) == plan["victims"]["files"]
    assert any("/data-" in path for path in gone)
    left = _rows(both, replaced)
    assert left.items() <= rows.items()
    assert left
    assert (Path(replaced.table) / "tag/tag-earlier").exists()
    assert not replaced.missing()
    assert not {path for path in replaced.reader().orphans() if "/_firnline/" not in path}
    assert replaced.process().check(replaced.table).sound


@pytest.mark.sampled(2)
def test_a_search_takes_nothing_of_before(replaced: Copy) -> None:
    age(disk(Path(replaced.table)))
    before = disk(Path(replaced.table))
    replaced.process().orphans(replaced.table, **MEANT)
    assert disk(Path(replaced.table)) == before
