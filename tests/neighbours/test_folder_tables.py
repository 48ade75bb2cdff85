"""Tables that no catalog lists lie in the folders of one that does, and their files were imported: they are asked for
by their folders alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from .lakes import RealLake, real_lake, rows


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as lake:
        yield lake


def paimon_file(lake: RealLake, table: str, below: str) -> Path:
    """Returns a data file of a Paimon table of the warehouse: all of that table that matters here is where it lies."""
    place = lake.folder / "warehouse" / table
    (place / "schema").mkdir(parents=True, exist_ok=True)
    (place / "schema/schema-0").write_text("{}")
    path = place / below / "data-1.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(rows(1, 2), path)
    return path


def imported_and_gone(lake: RealLake, path: str, **properties: str) -> Table:
    """Returns a table that had taken the file in, and has not got it any more."""
    table = lake.create("one", **properties)
    table.add_files([path])
    lake.overwrite("one", 3)
    return lake.table("one")


BUCKETS = ["bucket-0", "p=a%2Fb/bucket-12", "p=1/q=x y/bucket-postpone", "data/p=1/bucket-0"]


@pytest.mark.parametrize("below", BUCKETS)
def test_a_broad_folder_has_tables_in_it_that_no_catalog_lists(lake: RealLake, below: str) -> None:
    """Its own folder is the whole warehouse: what it once imported from a Paimon table there went with its expiry."""
    path = paimon_file(lake, "pw.db/t", below)
    imported_and_gone(lake, f"file://{path}", **{"write.data.path": f"file://{lake.folder}/warehouse"})
    said = str(lake.expire("one", blast_radius=1.0))
    assert path.exists()
    assert "spared   1 file" in said


def test_files_outside_may_go_but_for_those_of_other_tables(lake: RealLake) -> None:
    path, nobodys = paimon_file(lake, "pw.db/t", "bucket-0"), lake.folder / "outside/bucket-0/data-1.parquet"
    nobodys.parent.mkdir(parents=True)
    shutil.copy(path, nobodys)
    table = lake.create("one")
    table.add_files([f"file://{path}", f"file://{nobodys}"], check_duplicate_files=False)
    lake.overwrite("one", 3)
    lake.expire("one", blast_radius=1.0, include_outside=True)
    assert path.exists()
    assert not nobodys.exists()


def test_a_table_inside_the_folder_of_another_owns_its_files(lake: RealLake) -> None:
    """It lies in a Paimon table's folder, so nothing of its own would ever go."""
    outer = paimon_file(lake, "db/one", "bucket-9")
    path = lake.folder / "warehouse/db/one/data/bucket-0/data-1.parquet"
    path.parent.mkdir(parents=True)
    shutil.copy(outer, path)
    imported_and_gone(lake, f"file://{path}", **{"write.data.path": f"file://{path.parent.parent}"})
    lake.expire("one", blast_radius=1.0)
    assert outer.exists()
    assert not path.exists()


def test_a_link_leads_into_a_table_that_no_catalog_lists(lake: RealLake) -> None:
    path, link = paimon_file(lake, "pw.db/t", "bucket-0"), lake.folder / "link"
    link.symlink_to(path.parent.parent)
    imported_and_gone(lake, f"file://{link}/bucket-0/data-1.parquet")
    lake.expire("one", blast_radius=1.0, include_outside=True)
    assert path.exists()
