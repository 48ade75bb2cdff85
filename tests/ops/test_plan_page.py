"""A plan as people read it: one whole page, word by word; and how pages and figures are made."""

from __future__ import annotations

import pytest

import firnline
from firnline.model.files import Tally
from firnline.model.times import DAY_MS, minute
from firnline.plans.pages import Grid, Hint, Line, Page, counted, size, tally
from firnline.stores.objects import ObjectStores
from firnline.testing.manifests import AvroLayout, Item
from firnline.testing.tables import SmallTable

PAGE = """\
memory://page/lake/trips (iceberg), 15 snapshots, 4 refs
policy: keep within 2d (asked), daily 3 (asked)
keep 5
  snapshot             time (UTC)        refs        why it stays
  3000000000000000015  2026-01-16 00:00  experiment  branch head experiment, ref experiment: 1 of 1, within 2d, daily #1 on experiment
  3000000000000000014  2026-01-15 00:00  main        current, branch head main, within 2d, daily #1
  3000000000000000013  2026-01-14 00:00              within 2d, daily #2
  3000000000000000012  2026-01-13 00:00              daily #3
  3000000000000000004  2026-01-05 00:00  release     tag release
expire 10, from 2026-01-02 00:00 to 2026-01-12 00:00
  snapshot             time (UTC)
  3000000000000000001  2026-01-02 00:00
  3000000000000000002  2026-01-03 00:00
  3000000000000000003  2026-01-04 00:00
  3000000000000000005  2026-01-06 00:00
  3000000000000000006  2026-01-07 00:00
  3000000000000000007  2026-01-08 00:00
  3000000000000000008  2026-01-09 00:00
  3000000000000000009  2026-01-10 00:00
  3000000000000000010  2026-01-11 00:00
  3000000000000000011  2026-01-12 00:00
expire refs: candidate
1. would remove 10 snapshots and 1 ref from the metadata, in one commit
2. would then wait for readers, undo possible: 1d
3. would then purge: 15 files, 22.4 KiB
  would free     files     bytes
  data               1      41 B
  manifest           3   6.7 KiB
  manifest-list     10  15.5 KiB
  statistics         1      49 B
spared, because it lies outside the table's own folders: 1 file, 4.9 KiB
remaining: 36 files, 43.1 KiB
metadata: 1 version, 6.8 KiB
nothing was changed

hint: `firnline why TABLE SNAPSHOT` explains one snapshot, `files="OUT.parquet"` lists the files
hint: `firnline expire TABLE`, with the same options, carries it out; it asks first"""  # noqa: E501


def story() -> SmallTable:
    """A fortnight: a file elsewhere, an overwrite, a tag that stays, one whose time is over, and a branch."""
    table = SmallTable(ObjectStores(), "memory://page/lake/trips", AvroLayout(3, codec="null"))
    table.properties["comment"] = "of 6.8 KiB, be numbers longer"
    table.register([Item("memory://page/elsewhere/x.parquet", 5_000)])
    first = table.append(3)
    table.delete_rows(table.live()[1:3])
    table.tag("candidate", first, max_ref_age_ms=3 * DAY_MS)
    release = table.overwrite(table.live()[:2])
    table.tag("release", release)
    table.statistics(first)
    for _ in range(9):
        table.append()
    table.branch("experiment", table.append(), min_snapshots_to_keep=1)
    table.append(2, on="experiment")
    table.publish()
    return table


def test_the_whole_page() -> None:
    table = story()
    view = firnline.open("/dev/null").plan(table.location, now=table.now_ms, keep={"within": "2d", "daily": "3"})
    assert str(view) == PAGE


def test_a_page_without_anything_to_do() -> None:
    table = SmallTable(ObjectStores(), "memory://page/lake/quiet")
    table.append()
    table.publish()
    said = str(firnline.open("/dev/null").plan(table.location, now=table.now_ms)).splitlines()
    assert said[2] == "keep 1"
    assert said[5:6] == ["expire 0"]
    assert said[6].startswith("metadata: 1 version, ")
    assert said[7:] == ["nothing was changed"]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (5 * 1024**3, "5.0 GiB"),
        (3 * 1024**6, "3.0 EiB"),
        (2000 * 1024**6, "2000.0 EiB"),
    ],
)
def test_sizes_are_said_in_binary_units(count: int, words: str) -> None:
    assert size(count) == words


def test_counts_have_separators_and_agree_in_number() -> None:
    assert [counted(count, "file") for count in (0, 1, 2, 12_345)] == ["0 files", "1 file", "2 files", "12,345 files"]
    assert tally(Tally(1, 2048)) == "1 file, 2.0 KiB"


def test_instants_are_said_to_the_minute_in_utc() -> None:
    assert minute(1_787_389_259_999) == "2026-08-22 09:00"


def test_a_grid_aligns_its_columns_and_leaves_no_spaces_at_the_end() -> None:
    grid = Grid((("a", "1", ""), ("long", "1,000", "x")), ("name", "files", ""), right=frozenset({1}))
    assert Page((grid,)).to_text().splitlines() == ["  name  files", "  a         1", "  long  1,000  x"]


def test_hints_come_last_after_a_blank_line() -> None:
    page = Page((Hint("first"), Line("body"), Hint("second")))
    assert page.to_text() == "body\n\nhint: first\nhint: second"
    assert Page((Line("body"),)).to_text() == "body"


def test_markup_is_escaped_everywhere() -> None:
    page = Page((Line("<1>"), Hint("<2>"), Grid((("<3>",),), ("<4>",)))).to_html()
    assert "<1>" not in page
    assert all(f"&lt;{number}&gt;" in page for number in (1, 2, 3, 4))


def test_only_a_plan_by_the_tables_own_retention_says_how_a_rule_is_tried() -> None:
    table = SmallTable(ObjectStores(), "memory://untouched/lake/trips", AvroLayout(3, codec="null"))
    for _ in range(3):
        table.append(1)
    table.publish()
    lake = firnline.open("/dev/null")
    assert 'hint: `keep={"last": 10}`' in str(lake.plan(table.location, now=table.now_ms))
    assert "hint: `keep=" not in str(lake.plan(table.location, now=table.now_ms, keep={"last": 5}))
