"""One table, two formats: Paimon's writers keep Iceberg metadata over their own files, for other engines.

Such an Iceberg table is looked at and planned, and changed by nobody but Paimon; and what any Iceberg metadata of a
Paimon table reaches is needed, whatever the table's options say.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable

from firnline.app.places import places_of
from firnline.cli.main import run as firnline
from firnline.errors import FirnlineError, RefusedForSafety
from firnline.lake import Lake
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold
from firnline.ops.marks.tags import add_tag
from firnline.policy.parse import parse_policy
from harness.paimon.java_table import JavaTable
from harness.paimon.reader import TableReader
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .aged import MEANT, age, disk
from .small import EVERYTHING_OLD, Copy, quick_folder, row

STORAGE = "metadata.iceberg.storage"
CODEC = "metadata.iceberg.manifest-compression"
"""Snappy unless told, which PyIceberg does not read everywhere."""

AT_ONCE = {"grace": "0s", "sole_writer": True}
VIEW = "lake.ns.view"


@dataclass
class Mirrored:
    """A table in a warehouse, written by Java, with its Iceberg metadata."""

    root: Path
    table: JavaTable

    @property
    def copy(self) -> Copy:
        return Copy(self.table.folder.parent)

    @property
    def mirrors(self) -> list[Path]:
        return sorted(self.root.rglob("*.metadata.json"))

    def reached(self) -> set[str]:
        """Returns every data file that PyIceberg finds in any snapshot of any Iceberg metadata that is there."""
        found: set[str] = set()
        for path in self.mirrors:
            table = StaticTable.from_metadata(str(path))
            for each in table.snapshots():
                found |= {task.file.file_path for task in table.scan(snapshot_id=each.snapshot_id).plan_files()}
        return found

    def rows(self) -> list[tuple[int, str]]:
        """Returns what PyIceberg reads now, of the newest metadata."""
        newest = max(self.mirrors, key=lambda path: int(path.name[1:].partition(".")[0]))
        read = StaticTable.from_metadata(str(newest)).scan().to_arrow().to_pylist()
        return sorted((each["k"], each["v"]) for each in read)

    def change(self, number: int) -> None:
        self.table.write(MAIN, [row(number, f"number {number}")], {})
        self.table.compact(MAIN, True)

    def missing(self) -> dict[str, set[str]]:
        reachable = TableReader(self.table.folder).reachable()
        return {str(root): each.missing for root, each in reachable.items() if each.missing}

    def picture(self) -> dict[str, bytes]:
        return {path: Path(path).read_bytes() for path in disk(self.root) if not path.endswith(".sqlite")}


@pytest.fixture(params=[pytest.param("table-location", marks=pytest.mark.full), "hadoop-catalog"])
def mirrored(both: Paimon, request: pytest.FixtureRequest) -> Iterator[Mirrored]:
    root = quick_folder()
    folder = root / "w/db.db/t"
    folder.parent.mkdir(parents=True)
    found = Mirrored(root, JavaTable(both.java, folder))
    found.table.create(Shape("java", True, ("p",), {"bucket": "1", STORAGE: request.param, CODEC: "deflate"}))
    for number in range(3):
        found.change(number)
    found.table.tag(MAIN, "early", 2)
    found.table.create_branch("side", "early")
    found.change(3)
    yield found
    shutil.rmtree(root)


# ---------------------------------------------------------------- the Iceberg table


@pytest.fixture
def view(mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch) -> Mirrored:
    """The same, registered in a catalog by its Iceberg metadata."""
    address = {"TYPE": "sql", "URI": f"sqlite:///{mirrored.root}/lake.sqlite", "WAREHOUSE": f"{mirrored.root}/w"}
    for name, value in address.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    catalog = load_catalog("lake", **{name.lower(): value for name, value in address.items()})
    catalog.create_namespace("ns")
    catalog.register_table("ns.view", str(mirrored.mirrors[-1]))
    catalog.close()
    return mirrored


def lake(policy: str = "") -> Lake:
    return Lake(
        places_of(parse_policy(policy, "a test's policy") if policy else parse_policy("{}", "none"), engine="local")
    )


ACTS: dict[str, Callable[[Lake], object]] = {
    "expire": lambda it: it.expire(VIEW, **EVERYTHING_OLD, **AT_ONCE),
    "alone": lambda it: lake("sharing: none").expire(VIEW, **EVERYTHING_OLD, **AT_ONCE),
    "tag": lambda it: add_tag(it.places.table_context(VIEW), "mine", None, None),
    "hold": lambda it: add_hold(it.places.table_context(VIEW), Hold("late", "somebody", "a test", "2")),
    "orphans": lambda it: it.orphans(VIEW, **MEANT),
    "drop": lambda it: it.drop(VIEW, ["early"], **AT_ONCE),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_nobody_changes_an_iceberg_table_that_paimon_writes(view: Mirrored, act: Callable[[Lake], object]) -> None:
    age(disk(view.root))
    before = view.picture()
    with pytest.raises(RefusedForSafety, match="over the files of another table") as refused:
        act(lake())
    assert f"work on {view.table.folder}" in refused.value.hint
    assert view.picture() == before
    view.change(9)
    assert (9, "number 9") in view.rows(), "the next version is Paimon's own"


def test_it_is_planned_and_a_saved_plan_is_not_carried_out(view: Mirrored, capsys: pytest.CaptureFixture[str]) -> None:
    before = view.picture()
    plan = lake().plan(VIEW, **EVERYTHING_OLD, save=True).to_json()
    assert plan["expire"]
    assert plan["victims"]["files"]
    assert "over the files of another table" in plan["conflict"]
    assert firnline(["commit", plan["run"], "--json"]) == RefusedForSafety.exit_code
    said = json.loads(capsys.readouterr().err)["error"]
    assert f"work on {view.table.folder}" in said["hint"]
    assert view.picture() == before


def test_a_table_that_becomes_one_is_not_purged(view: Mirrored) -> None:
    """Its run was committed while Paimon's schema was not to be seen."""
    hidden, schema = view.root / "hidden", view.table.folder / "schema"
    shutil.move(schema, hidden)
    ended = lake().expire(VIEW, **EVERYTHING_OLD, grace="1s")
    shutil.move(hidden, schema)
    before = view.picture()
    time.sleep(1.1)
    with pytest.raises(RefusedForSafety, match="over the files of another table") as refused:
        lake().purge(str(ended.run.id))
    assert f"work on {view.table.folder}" in refused.value.hint
    assert view.picture() == before


# ---------------------------------------------------------------- the Paimon table


def test_a_mirror_in_a_catalog_is_counted_where_the_operator_names_it(view: Mirrored) -> None:
    """The catalog may point at metadata that lies anywhere."""
    table, asked = str(view.table.folder), {**EVERYTHING_OLD, "retain_last": 1, **AT_ONCE}
    before, needed = view.picture(), view.reached()
    with pytest.raises(RefusedForSafety, match=f"{VIEW} uses the folder") as refused:
        lake().expire(table, **asked)
    assert "shared-with" in refused.value.hint
    assert view.picture() == before
    lake(f"shared-with: [{VIEW}]").expire(table, **asked)
    assert view.picture().keys() < before.keys()
    assert {path for path in needed if not Path(path).exists()} == set()
    assert not view.missing()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("said", ["as it was", "disabled"])
@pytest.mark.parametrize("policy", ["", "sharing: none"])
def test_what_iceberg_metadata_reaches_outlives_an_expiry(mirrored: Mirrored, said: str, policy: str) -> None:
    """Also where only a job had set the option, and nobody writes that metadata any more."""
    if said == "disabled":
        mirrored.table.set_option(STORAGE, "disabled")
        mirrored.change(4)
    needed, rows = mirrored.reached(), mirrored.rows()
    assert needed
    process = mirrored.copy.process(policy=policy)
    process.expire(str(mirrored.table.folder), **{**EVERYTHING_OLD, "retain_last": 1}, **AT_ONCE)
    assert {path for path in needed if not Path(path).exists()} == set()
    assert mirrored.rows() == rows
    assert not mirrored.missing()
    age(disk(mirrored.root))
    process.orphans(str(mirrored.table.folder), **MEANT)
    assert {path for path in needed if not Path(path).exists()} == set()
    assert mirrored.rows() == rows


@pytest.mark.sampled(1)
def test_what_paimon_mirrors_after_an_expiry_is_read(mirrored: Mirrored) -> None:
    asked = {**EVERYTHING_OLD, "retain_last": 1}
    mirrored.copy.process().expire(str(mirrored.table.folder), **asked, **AT_ONCE)
    mirrored.change(5)
    assert mirrored.rows() == [(5, "number 5")]
    assert {path for path in mirrored.reached() if not Path(path).exists()} == set()
    before = disk(mirrored.root)
    mirrored.copy.process().expire(str(mirrored.table.folder), **asked, **AT_ONCE)
    assert before - disk(mirrored.root), "what Paimon let go of in both formats goes"
    assert mirrored.rows() == [(5, "number 5")]
    assert not mirrored.missing()


def test_what_came_between_commit_and_purge_counts(mirrored: Mirrored) -> None:
    """A job publishes the table while the grace of a run goes by."""
    mirrored.table.set_option(STORAGE, "disabled")
    aside = [(path, path.read_bytes()) for path in mirrored.mirrors]
    needed = mirrored.reached()
    for path, _ in aside:
        path.unlink()
    copy = mirrored.copy
    asked = {**EVERYTHING_OLD, "retain_last": 1}
    ended = copy.process().expire(str(mirrored.table.folder), **asked, grace="1m")
    for path, data in aside:
        path.write_bytes(data)
    copy.clock.advance(61_000)
    copy.process().resume(str(mirrored.table.folder))
    assert ended.run.plan["victims"]["files"]
    assert {path for path in needed if not Path(path).exists()} == set()


def test_metadata_with_the_codec_that_paimon_takes_unless_told_is_read(mirrored: Mirrored) -> None:
    mirrored.table.set_option(CODEC, "snappy")
    mirrored.change(4)
    plan = mirrored.copy.process().plan(str(mirrored.table.folder), **{**EVERYTHING_OLD, "retain_last": 1}).to_json()
    assert plan["spared"]["needed-elsewhere"]["files"]


def test_iceberg_metadata_that_cannot_be_read_stops_the_run(mirrored: Mirrored) -> None:
    mirrored.mirrors[-1].write_text("{")
    before = mirrored.picture()
    with pytest.raises(FirnlineError, match=mirrored.mirrors[-1].name):
        mirrored.copy.process().expire(str(mirrored.table.folder), **EVERYTHING_OLD, **AT_ONCE)
    assert mirrored.picture() == before


def test_a_mirror_that_no_catalog_has_is_no_dropped_table(mirrored: Mirrored) -> None:
    age(disk(mirrored.root))
    before = mirrored.picture()
    for each in (mirrored.table.folder, mirrored.mirrors[-1].parent.parent):
        with pytest.raises(FirnlineError):
            lake().purge_dropped(str(mirrored.root / "w"), str(each), consent=lambda plan: True, grace="0s")
    assert mirrored.picture() == before


@pytest.mark.sampled(1)
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_counts_what_mirrors_need(mirrored: Mirrored) -> None:
    table, asked = str(mirrored.table.folder), {**EVERYTHING_OLD, "retain_last": 1}
    plans = [
        Lake(places_of(parse_policy("{}", "none"), engine=engine)).plan(table, **asked) for engine in ("local", "spark")
    ]
    local, spark = (sorted(each["path"] for each in plan.files()) for plan in plans)
    assert local == spark
    assert plans[0].to_json()["spared"] == plans[1].to_json()["spared"]
    assert "needed-elsewhere" in plans[1].to_json()["spared"]
