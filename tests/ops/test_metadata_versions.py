"""The versions of a table's metadata are counted and measured, and a plan says what clears them away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import firnline
from firnline.cli.main import run
from firnline.errors import StoreError
from firnline.formats.iceberg.table import IcebergFormat
from firnline.lake import Lake
from firnline.ops.table.versions import FEWER, listed_versions
from firnline.plans.pages import size
from firnline.ports.formats import State
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores

COMMITS = FEWER + 5
CLEARING = "write.metadata.delete-after-commit.enabled"
LOG_LENGTH = "write.metadata.previous-versions-max"


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table whose log names more versions than a plan proposes to keep."""
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    lines = "".join(f"    {name}: {value}\n" for name, value in settings.items())
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{lines}")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("ns")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = catalog.create_table("ns.t", rows.schema)
    table.append(rows)
    for number in range(COMMITS):
        with table.transaction() as change:
            change.set_properties({"number": str(number)})
    return table


def documents(table: Table) -> dict[str, int]:
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    return {str(path): path.stat().st_size for path in folder.glob("*.metadata.json")}


def planned(lake: Lake, **asked: Any) -> dict[str, Any]:
    found: dict[str, Any] = lake.plan("lake.ns.t", **asked).to_json()["metadata_versions"]
    return found


def test_text_json_and_page_tell_the_same_of_them(theirs: Table) -> None:
    view, there = firnline.open("/dev/null").plan("lake.ns.t"), documents(theirs)
    found = view.to_json()["metadata_versions"]
    assert (found["versions"], found["bytes"], found["unsized"]) == (len(there), sum(there.values()), 0)
    assert found["cleared"] is False
    line = f"metadata: {len(there)} versions, {size(found['bytes'])}; no expiry removes any of them"
    assert line in str(view).splitlines()
    assert line in view._repr_html_()
    left = f"would leave {FEWER + 1} versions of metadata, {size(found['clearing']['bytes'])};"
    assert left in str(view).splitlines()[-1]
    assert left in view._repr_html_()


def test_what_is_proposed_leaves_what_it_says(theirs: Table) -> None:
    proposed = planned(firnline.open("/dev/null"))["clearing"]
    assert proposed["set"] == f"{CLEARING}=true and {LOG_LENGTH}={FEWER}"
    newest = sorted(documents(theirs))[-FEWER - 1 :]
    assert proposed["bytes"] == sum(documents(theirs)[each] for each in newest)
    with theirs.transaction() as change:
        change.set_properties({CLEARING: "true", LOG_LENGTH: str(FEWER)})
    assert len(documents(theirs)) == proposed["versions"]
    found = planned(firnline.open("/dev/null"))
    assert (found["cleared"], found["clearing"], found["versions"]) == (True, None, FEWER + 1)


def test_one_that_is_gone_is_of_unknown_size_and_stops_no_plan(theirs: Table) -> None:
    there = documents(theirs)
    gone = min(there)
    Path(gone).unlink()
    found = planned(firnline.open("/dev/null"))
    assert (found["versions"], found["unsized"]) == (len(there), 1)
    assert found["bytes"] == sum(there.values()) - there[gone]


class Bucket(ObjectStores):
    """Lists what a table's log names, each of ten bytes, after so many others; notes the listings, and may fail."""

    def __init__(self, state: State, fails_after: int | None = None, before: int = 0) -> None:
        super().__init__()
        self._state, self._fails_after, self._before = state, fails_after, before
        self.listings: list[str] = []

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        self.listings.append(prefix)
        yield from (ObjectMeta(f"{prefix}/0-{number}", 1) for number in range(self._before))
        for number, (key, _) in enumerate(IcebergFormat(self).versions(self._state)):
            if number == self._fails_after:
                raise StoreError("the bucket went away")
            yield ObjectMeta(key, 10)


def in_a_bucket(table: Table) -> State:
    """Returns the table's state as if all of it were in a bucket."""
    state = IcebergFormat(ObjectStores()).load("lake.ns.t", table.metadata_location)
    here, there = table.location(), "s3://bucket/t"
    document = json.loads(json.dumps(state.document).replace(here, there))
    return replace(state, document=document, fence=state.fence.replace(here, there), location=there)


@pytest.mark.parametrize(
    ("bucket", "seen"),
    [({}, COMMITS + 2), ({"fails_after": 4}, 4), ({"fails_after": 0}, 0), ({"before": 5_000}, 0)],
    ids=["whole", "cut", "silent", "too many objects"],
)
def test_many_tables_in_buckets_are_listed_once_each(theirs: Table, bucket: dict[str, int], seen: int) -> None:
    state = in_a_bucket(theirs)
    store = Bucket(state, **bucket)
    found = listed_versions(IcebergFormat(store), state, store)
    assert found is not None
    assert (found.versions, found.bytes, found.unsized) == (COMMITS + 2, 10 * seen, COMMITS + 2 - seen)
    assert store.listings == ["s3://bucket/t/metadata"]


def test_an_expiry_of_many_tables_lists_no_versions(theirs: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker asks all tables in every round: what only informs costs no request there."""
    monkeypatch.setattr("firnline.app.several.listed_versions", pytest.fail)
    (answer,) = firnline.open("/dev/null").several().expire(older_than="2100-01-01", retain_last=1)
    assert answer.problem is None


def test_plans_of_many_tables_tell_the_same(theirs: Table, capsys: pytest.CaptureFixture[str]) -> None:
    alone = planned(firnline.open("/dev/null"))
    (answer,) = firnline.open("/dev/null").several().plan()
    assert answer.value is not None
    assert answer.value.to_json()["metadata_versions"] == alone
    assert alone["bytes"] == sum(documents(theirs).values())
    assert run(["plan", "--all"]) == 0
    line = f"metadata: {alone['versions']} versions, {size(alone['bytes'])}; no expiry removes any of them"
    assert line in capsys.readouterr().out.splitlines()


def test_an_expiry_removes_none_of_them(theirs: Table) -> None:
    before = documents(theirs)
    theirs.append(pa.table({"id": pa.array([2], pa.int64())}))
    firnline.open("/dev/null").expire("lake.ns.t", older_than="2100-01-01", grace="0s", blast_radius=1.0)
    assert before.keys() <= documents(theirs).keys()
