"""Names and numbers as odd as Paimon allows them: what carries them is seen, or refused by its name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, Copy, row

NAMES = ("a/b", "deep/er/still", "a:b", "x@y", "a%2Fb", "ü", "a b", "tag/tag-a", "a/tag", "a/consumer/b")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_branch_with_any_name_keeps_its_files(both: Paimon, copy: Copy, name: str) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.create_branch(name, "two")
    table.write(name, [row(21, "once")])
    table.write(name, [row(22, "twice")])
    rows = _rows(table, name)
    plan = copy.process().plan(copy.table, **EVERYTHING_OLD).to_json()
    assert {f"{name}:3", f"{name}:4"} <= {each["snapshot"] for each in plan["keep"]}
    copy.expire()
    assert _rows(table, name) == rows
    assert len(rows) == 5


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_tag_with_any_name_keeps_its_files(both: Paimon, copy: Copy, name: str) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.tag(MAIN, name, 3)
    copy.expire()
    rows = _rows(table, MAIN, {"scan.tag-name": name})
    assert len(rows) == 3
    assert copy.process().check(copy.table).sound


def test_a_branch_with_any_name_goes_and_comes_back(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    for name in ("a", "a/b"):
        table.create_branch(name, "two")
    before = copy.picture()
    for gone, stays in (("a/b/snapshot", "a/snapshot"), ("a/snapshot", "a/b/snapshot")):
        ended = copy.process().drop(copy.table, [gone.removesuffix("/snapshot")], grace="1m", blast_radius=1.0)
        assert not (copy.folder / "t/branch" / f"branch-{gone}").exists()
        assert (copy.folder / "t/branch" / f"branch-{stays}").exists()
        copy.process().undo(str(ended.run.id))
        assert copy.picture() == before


def test_a_rule_sees_the_history_of_a_branch_with_any_name(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.create_branch("x@y", "two")
    for number in (21, 22):
        table.write("x@y", [row(number, "more")])
    plan = copy.process().plan(copy.table, keep={"last": "2"}, blast_radius=1.0).to_json()
    assert {"x@y:3", "x@y:4"} <= {each["snapshot"] for each in plan["keep"]}


@pytest.mark.parametrize("name", ["firnline-snapshot-", "firnline-snapshot-backup", "firnline-snapshot-3.old"])
def test_a_tag_that_only_begins_like_one_of_firnlines_is_somebodys(both: Paimon, copy: Copy, name: str) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.tag(MAIN, name, 3)
    copy.expire()
    assert len(_rows(table, MAIN, {"scan.tag-name": name})) == 3


def test_two_tags_that_would_be_one_are_refused(both: Paimon, copy: Copy) -> None:
    """Who removed the one by its name would remove the other too."""
    JavaTable(both.java, copy.folder / "t").tag(MAIN, "side:two", 3)
    with pytest.raises(UnsupportedFormat, match="side:two"):
        copy.process().plan(copy.table)


def _rows(table: JavaTable, branch: str, options: dict[str, str] | None = None) -> list[Any]:
    return sorted(table.rows.read(table.open(branch, options)), key=repr)


def _said(path: str, **fields: object) -> Callable[[Copy], Path]:
    def write(copy: Copy) -> Path:
        place = copy.folder / "t" / path
        place.write_text(json.dumps({**json.loads(place.read_text()), **fields}))
        return place

    return write


def _named(path: str, **fields: object) -> Callable[[Copy], Path]:
    """Another snapshot file, of the newest snapshot's text."""

    def write(copy: Copy) -> Path:
        place = copy.folder / "t" / path
        shutil.copy(copy.folder / "t/snapshot/snapshot-7", place)
        return _said(path, **fields)(copy)

    return write


ABSURD = {
    "a time that never ends": _said("tag/tag-short", tagTimeRetained=float("inf")),
    "a time that is none": _said("tag/tag-short", tagTimeRetained=float("nan")),
    "half a character": _said("snapshot/snapshot-2", baseManifestList="\ud800"),
    "a column whose name is none": _said("schema/schema-0", fields=[{"name": [1], "type": "INT"}], partitionKeys=["p"]),
    "a schema of another number": _said("schema/schema-0", id=5),
    "zeros before a number": _named("snapshot/snapshot-007"),
    "a number beyond all": _named("snapshot/snapshot-9223372036854775808", id=9223372036854775808),
}


@pytest.mark.parametrize("damage", ABSURD.values(), ids=list(ABSURD))
def test_absurd_numbers_are_refused_by_name(copy: Copy, damage: Callable[[Copy], Path]) -> None:
    path = damage(copy)
    before = copy.picture()
    with pytest.raises(UnreadableMetadata) as caught:
        copy.expire()
    assert str(path).removeprefix(copy.table) in caught.value.message
    assert copy.picture() == before


def test_a_number_far_above_the_others_takes_no_time(copy: Copy) -> None:
    """However wide the hole: numbers that are not there are not counted through."""
    far = 10**17
    _named(f"snapshot/snapshot-{far}", id=far)(copy)
    _said("schema/schema-0", options={"bucket": "1", "snapshot.expire.limit": str(2**31 - 1)})(copy)
    assert copy.process().plan(copy.table).to_json()["expire"] == ["1", "3", "5", "6", "7"]
