"""Pointers that follow the commits of a program which uses PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.publishing_catalogs import PublishingSqlCatalog
from tests.neighbours.lakes import RealLake, real_lake, rows


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as found:
        (tmp_path / "firnline.yaml").write_text("pointers: identifier")
        monkeypatch.chdir(tmp_path)
        plain = found.catalog
        found.catalog = PublishingSqlCatalog("lake", **plain.properties)
        yield found
        found.catalog.close()
        found.catalog = plain


def metadata_at(lake: RealLake, place: str, table: str) -> str:
    from firnline import open_path

    return open_path(place, table=table).metadata


def test_every_commit_is_followed(lake: RealLake) -> None:
    table = lake.create("t")
    place = table.location()
    assert metadata_at(lake, place, "db.t") == table.metadata_location
    table.append(rows(1))
    assert metadata_at(lake, place, "db.t") == table.metadata_location
    with table.transaction() as change:
        change.set_properties(a="b")
    assert metadata_at(lake, place, "db.t") == table.metadata_location
    renamed = lake.catalog.rename_table("db.t", "db.new")
    for name in ("db.t", "db.new"):
        assert metadata_at(lake, place, name) == renamed.metadata_location


def test_a_commit_stands_whatever_becomes_of_its_pointer(lake: RealLake, caplog: pytest.LogCaptureFixture) -> None:
    table = lake.create("t")
    Path(table.location().removeprefix("file://"), "db_t_main.ver").write_text("{")
    table.append(rows(1))
    assert lake.read("t") == [1]
    assert "were not published" in caplog.text
