"""A branch that the table's options make everybody read is not dropped: rows would vanish without an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from firnline.errors import RefusedForSafety
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row
from .test_drop import AT_ONCE, drop_side

OPTIONS = (
    "scan.fallback-branch", "scan.primary-branch", "scan.fallback-snapshot-branch", "scan.fallback-delta-branch",
)  # fmt: skip


def with_option(copy: Copy, name: str, value: str, branch: str = MAIN) -> None:
    """Writes a new schema by hand: Paimon wants more of the table for some of these options."""
    folder = layout.branch_folder(copy.folder / "t", branch) / "schema"
    newest = max(folder.glob("schema-*"), key=lambda path: int(path.name.removeprefix("schema-")))
    document = json.loads(newest.read_text())
    number = document["id"] + 1
    after = {**document, "id": number, "options": {**document["options"], name: value}}
    (folder / f"schema-{number}").write_text(json.dumps(after))


def assert_refused(copy: Copy, option: str) -> None:
    before = copy.picture()
    with pytest.raises(RefusedForSafety, match=f"{option}.* names side") as refused:
        drop_side(copy)
    assert option in refused.value.hint
    assert copy.picture() == before


def test_the_branch_that_paimon_itself_would_not_drop_stays(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.write("side", [row(30, "only here", "lonely")])
    table.set_option("scan.fallback-branch", "side")
    rows = table.rows.read(table.open())
    assert "only here" in {each[1] for each in rows}
    with pytest.raises(Py4JJavaError):
        table.drop_branch("side")
    assert_refused(copy, "scan.fallback-branch")
    assert sorted(table.rows.read(table.open())) == sorted(rows)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("value", ["side", " side "])
def test_a_branch_that_the_table_reads_stays(copy: Copy, option: str, value: str) -> None:
    with_option(copy, option, value)
    assert_refused(copy, option)


def test_a_branch_that_another_branch_reads_stays(both: Paimon, copy: Copy) -> None:
    JavaTable(both.java, copy.folder / "t").create_branch("other", "two")
    with_option(copy, "scan.fallback-branch", "side", "other")
    assert_refused(copy, "scan.fallback-branch")


def test_it_goes_with_the_branch_that_reads_it(both: Paimon, copy: Copy) -> None:
    JavaTable(both.java, copy.folder / "t").create_branch("other", "two")
    with_option(copy, "scan.fallback-branch", "side", "other")
    copy.process().drop(copy.table, ["side", "other"], **AT_ONCE)
    assert not Path(copy.table, "branch/branch-side/snapshot").exists()


def test_an_option_that_is_not_set_any_more_keeps_nothing(copy: Copy) -> None:
    with_option(copy, "scan.fallback-branch", "side")
    with_option(copy, "scan.fallback-branch", "another")
    drop_side(copy)
    assert not Path(copy.table, "branch/branch-side/snapshot").exists()


def test_an_option_that_came_since_the_plan_counts(copy: Copy) -> None:
    with pytest.raises(RefusedForSafety, match=r"scan\.fallback-branch"):
        copy.process().drop(
            copy.table, ["side"], **AT_ONCE, confirm=lambda plan: with_option(copy, "scan.fallback-branch", "side")
        )
    assert layout.snapshots(copy.folder / "t", "side") == [2, 3]
    assert not copy.missing()
