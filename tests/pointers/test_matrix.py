"""Every naming, situation of a folder and publisher, on files and on S3: what a reader without a catalog finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from firnline.app.pointers.listener import hear
from firnline.app.pointers.watch import PointerWatch
from firnline.errors import NoSuchTable, UsageError
from firnline.lake import Lake
from harness.lanes import by_lane
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.neighbours.lakes import COLUMN, RealLake

NAMINGS = ("identifier", "ordinal", "uuid")


class Stand(RealLake):
    """A lake, and the publisher that follows it."""

    settings: dict[str, str]
    publisher: str
    watching: PointerWatch | None = None

    def configure(self, settings: dict[str, str]) -> None:
        """Makes this the catalog that firnline knows as `lake`, and PyIceberg's tables are made in."""
        self.settings, self.watching = settings, None
        (self.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))

    def published(self, *names: str) -> None:
        """Lets the publisher do its part, after the tables changed."""
        lake = self.firnline()
        if self.publisher == "watch":
            self.watching = self.watching or PointerWatch(lake.pointers)
            list(self.watching.look())
        for name in names:
            self._follow(lake, name)

    def _follow(self, lake: Lake, name: str) -> None:
        if self.publisher == "inline":
            number = len(self.table(name).metadata.refs)
            lake.hold(
                f"lake.db.{name}", f"hold-{number}-{len(self.table(name).properties)}", why="a commit of firnline's"
            )
        if self.publisher == "listener":
            hear(lake.pointers, json.dumps({"table": f"lake.db.{name}"}).encode(), print)

    def found(self, place: str, **asked: str) -> list[int]:
        """Returns the rows that a reader finds by the folder alone."""
        opened = self.firnline().pointers.open_path(place, **asked)  # type: ignore[arg-type]
        table = StaticTable.from_metadata(opened.metadata, self.settings)
        return sorted(table.scan().to_arrow().column(COLUMN).to_pylist())


@pytest.fixture
def other_catalog() -> Iterator[Callable[[dict[str, str]], SqlCatalog]]:
    with ExitStack() as closing:

        def open_catalog(settings: dict[str, str]) -> SqlCatalog:
            catalog = SqlCatalog("lake", **settings)
            closing.callback(catalog.close)
            catalog.create_namespace("db")
            return catalog

        yield open_catalog


@pytest.fixture(params=["files", "s3"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, publisher: str) -> dict[str, str]:
    sql = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    if request.param == "files":
        return {**sql, "warehouse": f"file://{tmp_path}/warehouse"}
    if publisher not in by_lane(unit=(), test=("watch",), full=("inline", "watch", "listener")):
        pytest.skip("on S3 with this publisher: make test-full runs it")
    server: Server = request.getfixturevalue("moto_server")
    return {**sql, "warehouse": f"{make_bucket(server, unique('matrix'))}/warehouse", **server.settings}


@pytest.fixture(params=["inline", "watch", "listener"])
def publisher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=NAMINGS)
def stand(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    publisher: str,
    other_catalog: Callable[[dict[str, str]], SqlCatalog],
) -> Stand:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("FIRNLINE_CACHE", str(tmp_path / "cache"))
    found = Stand(tmp_path, other_catalog(settings), f"pointers: {request.param}")
    found.publisher = publisher
    found.configure(settings)
    return found


@pytest.mark.sampled(4)
def test_a_folder_of_its_own(stand: Stand) -> None:
    stand.create("t")
    stand.append("t", 1)
    stand.published("t")
    place = stand.table("t").location()
    assert stand.found(place) == [1]
    stand.append("t", 2)
    stand.published("t")
    assert stand.found(place) == stand.found(place, table="db.t") == [1, 2]


@pytest.mark.sampled(4)
def test_made_again_in_the_same_folder(stand: Stand) -> None:
    stand.create("t")
    stand.append("t", 1)
    stand.published("t")
    place, before = stand.table("t").location(), str(stand.table("t").metadata.table_uuid)
    stand.catalog.drop_table("db.t")
    stand.create("t")
    stand.append("t", 2)
    stand.published("t")
    assert stand.found(place) == stand.found(place, uuid=str(stand.table("t").metadata.table_uuid)) == [2]
    with pytest.raises(NoSuchTable):
        stand.found(place, uuid=before)


@pytest.mark.sampled(4)
def test_renamed(stand: Stand) -> None:
    stand.create("t")
    stand.append("t", 1)
    stand.published("t")
    place = stand.table("t").location()
    stand.catalog.rename_table("db.t", "db.new")
    stand.append("new", 2)
    stand.published("new")
    assert stand.found(place) == stand.found(place, table="db.new") == [1, 2]
    if "uuid" not in stand.policy:
        assert stand.found(place, table="db.t") == [1, 2], "the old name leads to the new one"


@pytest.mark.sampled(4)
def test_a_folder_of_several_tables(stand: Stand) -> None:
    place = f"{stand.settings['warehouse']}/shared"
    schema = stand.create("like").schema()
    for number, name in enumerate(("one", "two")):
        stand.catalog.create_table(f"db.{name}", schema, location=place)
        stand.append(name, number)
    stand.published("one", "two")
    assert [stand.found(place, table=f"db.{name}") for name in ("one", "two")] == [[0], [1]]
    with pytest.raises(UsageError, match="2 tables"):
        stand.found(place)


@pytest.mark.sampled(4)
def test_two_environments(stand: Stand, other_catalog: Callable[[dict[str, str]], SqlCatalog]) -> None:
    stand.create("t")
    stand.append("t", 1)
    stand.published("t")
    first, place = str(stand.table("t").metadata.table_uuid), stand.table("t").location()
    dev = {**stand.settings, "uri": f"sqlite:///{stand.folder}/dev.db"}
    stand.catalog, schema = other_catalog(dev), stand.table("t").schema()
    stand.configure(dev)
    stand.catalog.create_table("db.t", schema, location=place)
    stand.append("t", 2)
    stand.published("t")
    assert stand.found(place, uuid=first) == [1], "readers of the first see what they saw"
    if "uuid" in stand.policy:
        assert stand.found(place, uuid=str(stand.table("t").metadata.table_uuid)) == [2]
