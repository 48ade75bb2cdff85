"""Changelogs that outlive their snapshots: written at commit, kept by Paimon's own rule, and gone with their files."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety
from firnline.formats.paimon.reading.branches import Branch, branches_of
from firnline.formats.paimon.reading.folder import read_folder
from firnline.formats.paimon.reading.schema import changelog_range
from firnline.formats.paimon.reading.side_objects import changelog_fates, consumers_of
from firnline.ops.marks.adopt import adopt
from firnline.stores.objects import ObjectStores
from firnline.testing.faults import Fault, When
from harness.paimon import layout
from harness.paimon.backdating import backdate
from harness.paimon.expiry import Retention, expire, expire_changelogs
from harness.paimon.java_table import JavaTable
from harness.paimon.plans import JavaPlans
from harness.paimon.rows import java_rows
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .cutting import WHEN, cut_run, cut_undo
from .small import Copy, in_two_hours, quick_folder, row

HOUR_MS = 3_600_000
KEEPS = {
    "bucket": "1",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "2",
    "changelog.num-retained.min": "3",
    "changelog.num-retained.max": "5",
    "changelog.time-retained": "1 d",
}
"""Two snapshots, and changelogs of the five newest, however old; of the three newest for ever."""

NATIVELY = {"retain_last": None, "older_than": None}


def make(both: Paimon, options: dict[str, str]) -> Path:
    """Returns a folder with a table of nine snapshots, a tag, and a branch whose changes are those of the tag."""
    folder = quick_folder()
    table = JavaTable(both.java, folder / "t")
    table.create(Shape("java", True, ("p",), {**KEEPS, **options}))
    table.write(MAIN, [row(1, "one"), row(2, "two")])
    table.write(MAIN, [row(2, "deux")])
    table.tag(MAIN, "two", 2)
    table.create_branch("side", "two")
    table.compact(MAIN, True)
    for number in range(3, 7):
        table.write(MAIN, [row(number, "more"), row(1, f"again {number}")])
    table.compact(MAIN, True)
    table.write(MAIN, [row(9, "last")])
    return folder


@pytest.fixture(scope="module", params=["input", pytest.param("none", marks=pytest.mark.full)])
def made(both: Paimon, request: pytest.FixtureRequest) -> Iterator[Path]:
    folder = make(both, {"changelog-producer": request.param})
    yield folder
    shutil.rmtree(folder)


def garbage(copy: Copy) -> set[str]:
    return {path for path in copy.reader().orphans() if "/_firnline/" not in path}


def native(copy: Copy, fault: Fault | None = None) -> None:
    copy.expire(fault, **NATIVELY)


# ---------------------------------------------------------------- one run


def test_what_a_compaction_wrote_is_nobodys_changelog(both: Paimon, copy: Copy) -> None:
    """Paimon's own expiry takes those files with the snapshot, and the table is as sound as before."""
    table = JavaTable(both.java, copy.folder / "t")
    table.drop_branch("side")
    assert expire(both.java, table, Retention(most=1, changelog_least=1000, changelog_most=2000)) == 8
    assert "COMPACT" in {layout.document(each)["commitKind"] for each in table.folder.glob("changelog/changelog-*")}
    assert copy.process().check(copy.table).sound


def test_a_retired_snapshot_gets_its_changelog_and_the_older_ones_go(both: Paimon, copy: Copy) -> None:
    folder, before = copy.folder / "t", garbage(copy)
    rows = java_rows(JavaTable(both.java, folder))
    plan = copy.process().plan(copy.table).to_json()
    copy.expire(**NATIVELY)
    assert layout.snapshots(folder, MAIN) == [8, 9]
    assert layout.changelogs(folder, MAIN) == [5, 6, 7]
    assert (folder / "changelog/EARLIEST").read_text() == "5"
    assert (folder / "changelog/LATEST").read_text() == "7"
    said = {each["name"]: each["why"] for each in plan["beside"]["expire"]}
    assert said == dict.fromkeys("1234", "changelog.num-retained.max: more than 5")
    kept = {each["name"]: each["why"] for each in plan["beside"]["keep"]}
    assert kept["7"] == "changelog.num-retained.min: 3 of 3"
    assert kept["5"] == "changelog.time-retained: newer than 1d"
    assert not copy.missing()
    assert garbage(copy) <= before, "all that only these held is gone"
    assert copy.process().check(copy.table).sound
    after = java_rows(JavaTable(both.java, folder))
    assert after == {root: rows[root] for root in after}
    plans = JavaPlans(both.java, JavaTable(both.java, folder))
    for number in layout.changelogs(folder, MAIN):
        opened = plans.changes(layout.PaimonRoot(MAIN, layout.CHANGELOG, str(number)))
        assert all(Path(path).exists() for path in opened)


def test_changelogs_go_by_their_age_where_no_snapshot_goes(copy: Copy) -> None:
    copy.expire(**NATIVELY)
    before = garbage(copy)
    late = in_two_hours() + 24 * HOUR_MS
    plan = copy.process().plan(copy.table, now=late).to_json()
    assert plan["expire"] == []
    assert [each["name"] for each in plan["beside"]["expire"]] == ["5", "6"]
    assert plan["victims"]["files"] > 0
    text = str(copy.process().plan(copy.table, now=late))
    assert "changelog.time-retained: older than 1d" in text
    assert "2 beside them" in text
    ended = copy.expire(now=late, **NATIVELY)
    assert ended.state == "done"
    assert layout.changelogs(copy.folder / "t", MAIN) == [7]
    assert not copy.missing()
    assert garbage(copy) == before


def test_an_undo_brings_changelogs_and_hints_back(copy: Copy) -> None:
    copy.expire(**NATIVELY)
    before = copy.picture()
    ended = copy.expire(now=in_two_hours() + 24 * HOUR_MS, grace="1h", **NATIVELY)
    assert copy.picture() != before
    copy.process().undo(str(ended.run.id))
    assert copy.picture() == before
    assert not copy.missing()


def test_an_undo_that_would_leave_a_gap_is_refused(copy: Copy) -> None:
    """Somebody took changelogs that followed: Paimon's readers need the numbers of these unbroken as well."""
    copy.expire(**NATIVELY)
    run = aged(copy, grace="1h")
    place = copy.folder / "t/changelog"
    document = json.loads((place / "changelog-7").read_text())
    (place / "changelog-9").write_text(json.dumps({**document, "id": 9}))
    (place / "changelog-7").unlink()
    with pytest.raises(RefusedForSafety, match="between changelog 6 and 9"):
        copy.process().undo(run)


def test_a_consumer_holds_changelogs(both: Paimon, copy: Copy) -> None:
    copy.expire(**NATIVELY)
    JavaTable(both.java, copy.folder / "t").consumer(MAIN, "job", 6)
    late = in_two_hours() + 24 * HOUR_MS
    plan = copy.process().plan(copy.table, now=late).to_json()
    assert [each["name"] for each in plan["beside"]["expire"]] == ["5"]
    kept = {each["name"]: each["why"] for each in plan["beside"]["keep"]}
    assert kept["6"] == "consumer job, which reads from 6 on"


def test_changelogs_of_a_table_that_has_no_rule_for_them_stay(both: Paimon, copy: Copy) -> None:
    copy.expire(**NATIVELY)
    table = JavaTable(both.java, copy.folder / "t")
    for option in ("changelog.num-retained.min", "changelog.num-retained.max"):
        table.set_option(option, "2")
    table.set_option("changelog.time-retained", "1 h")
    plan = copy.process().plan(copy.table, now=in_two_hours() + 24 * HOUR_MS).to_json()
    assert plan["beside"]["expire"] == []
    assert {each["name"] for each in plan["beside"]["keep"]} == {"5", "6", "7"}


def test_an_adopted_table_keeps_changelogs_as_before_and_its_writers_remove_none(both: Paimon, copy: Copy) -> None:
    copy.expire(**NATIVELY)
    process, late = copy.process(policy="keep: {last: 2}"), in_two_hours() + 24 * HOUR_MS
    before = process.plan(copy.table, now=late).to_json()["beside"]
    adopt(process.places.table_context(copy.table))
    assert adopt(process.places.table_context(copy.table)) == ()
    assert process.plan(copy.table, now=late).to_json()["beside"] == before
    table = JavaTable(both.java, copy.folder / "t")
    assert table.open().coreOptions().changelogLifecycleDecoupled()
    files = copy.picture().keys()
    config = table.open().coreOptions().expireConfig()
    assert table.open().newExpireSnapshots().config(config).expire() == 0
    assert table.open().newExpireChangelog().config(config).expire() == 0
    assert copy.picture().keys() == files


# ---------------------------------------------------------------- kills


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.full
def test_an_expiry_of_changelogs_is_cut_at_every_write(made: Path, when: When) -> None:
    effects = cut_run(made, native, when)
    assert any("/changelog/changelog-5" in key for _, key in effects)


@pytest.fixture(scope="module")
def with_changelogs(made: Path) -> Iterator[Path]:
    """The table after a run of firnline's: changelogs 5, 6 and 7 have outlived their snapshots."""
    copy = Copy.of(made, "with-changelogs")
    native(copy)
    yield copy.folder
    copy.end()


def aged(copy: Copy, fault: Fault | None = None, grace: str = "0s") -> str:
    late = in_two_hours() + 24 * HOUR_MS
    return str(copy.expire(fault, now=late, grace=grace, **NATIVELY).run.id)


@pytest.mark.sampled(1)
def test_changelogs_that_go_alone_are_cut_at_every_write(with_changelogs: Path) -> None:
    effects = cut_run(with_changelogs, aged, "before")
    assert any("/changelog/changelog-6" in key for _, key in effects)


@pytest.mark.full
def test_their_undo_is_cut_at_every_write(with_changelogs: Path) -> None:
    cut_undo(with_changelogs, lambda copy: aged(copy, grace="1h"))


# ---------------------------------------------------------------- Paimon's own rule


@pytest.fixture(scope="module")
def long(both: Paimon) -> Iterator[Path]:
    """A table of which Paimon itself expired twelve snapshots into changelogs; some of them are old."""
    folder = quick_folder()
    table = JavaTable(both.java, folder / "t")
    table.create(Shape("java", True, (), {**KEEPS, "changelog-producer": "input", "snapshot.expire.limit": "100"}))
    for number in range(15):
        table.write(MAIN, [row(number, "row")])
    expire(both.java, table, Retention(1, 3, changelog_least=1000, changelog_most=1000))
    assert len(layout.changelogs(table.folder, MAIN)) == 12
    yield folder
    shutil.rmtree(folder)


def gone_by_our_rule(branch: Branch, options: dict[str, str], now: int) -> list[int]:
    told = replace(branch, schema=replace(branch.schema, options={**branch.schema.options, **options}))
    times = {number: each.time_ms for number, each in branch.changelogs.items()}
    fates = changelog_fates(told, times, consumers_of(told, {}), changelog_range(told.schema, {}), now)
    return [int(fate.side_object.name) for fate in fates if fate.goes]


@pytest.mark.parametrize("seed", range(12))
def test_the_same_changelogs_go_as_by_paimons_own_expiry(both: Paimon, long: Path, seed: int) -> None:
    rng = random.Random(seed)
    copy = Copy.of(long, f"rule-{seed}")
    folder = copy.folder / "t"
    table, now = JavaTable(both.java, folder), in_two_hours() - 2 * HOUR_MS
    backdate(folder, rng, now)
    if rng.random() < 0.5:
        table.consumer(MAIN, "job", rng.randint(1, 16))
    least, limit, hours = rng.randint(3, 12), rng.choice([1, 4, 100]), rng.choice([1, 8, 24, 60])
    most = least + rng.randint(0, 6)
    branch = branches_of(read_folder(ObjectStores({}), str(folder)), str(folder))[""]
    options = {
        "changelog.num-retained.min": str(least),
        "changelog.num-retained.max": str(most),
        "changelog.time-retained": f"{hours} h",
        "snapshot.expire.limit": str(limit),
    }
    ours = gone_by_our_rule(branch, options, now)
    before = layout.changelogs(folder, MAIN)
    asked = Retention(
        changelog_least=least, changelog_most=most, changelog_older_than=now - hours * HOUR_MS, changelog_limit=limit
    )
    expire_changelogs(both.java, table, asked)
    assert ours == sorted(set(before) - set(layout.changelogs(folder, MAIN)))
    copy.end()
