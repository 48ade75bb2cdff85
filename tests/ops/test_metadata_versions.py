"""The versions of a table's metadata are counted and measured, and a plan says what clears them away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import firnline
from firnline.cli.main import run
from firnline.lake import Lake
from firnline.ops.table.versions import FEWER
from firnline.plans.pages import size
from firnline.stores.local import LocalFiles

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


def test_plans_of_many_tables_tell_the_same(
    theirs: Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = planned(firnline.open("/dev/null"))
    asked: list[str] = []
    head = LocalFiles.head
    monkeypatch.setattr(LocalFiles, "head", lambda store, key: asked.append(str(key)) or head(store, key))
    (answer,) = firnline.open("/dev/null").several().plan()
    assert answer.value is not None
    assert answer.value.to_json()["metadata_versions"] == alone
    assert not [key for key in asked if key.endswith(".metadata.json")], "one listing tells of all of them"
    assert alone["bytes"] == sum(documents(theirs).values())
    assert run(["plan", "--all"]) == 0
    line = f"metadata: {alone['versions']} versions, {size(alone['bytes'])}; no expiry removes any of them"
    assert line in capsys.readouterr().out.splitlines()


def test_an_expiry_removes_none_of_them(theirs: Table) -> None:
    before = documents(theirs)
    theirs.append(pa.table({"id": pa.array([2], pa.int64())}))
    firnline.open("/dev/null").expire("lake.ns.t", older_than="2100-01-01", grace="0s", blast_radius=1.0)
    assert before.keys() <= documents(theirs).keys()
