"""Times without a zone: a tag stays as long as its maker said, whatever zone anybody reads it in."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from firnline.errors import UsageError
from firnline.formats.paimon.reading.snapshot import tag_lasting
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from firnline.ops.marks.tags import add_tag
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row

EAST, WEST = "Pacific/Kiritimati", "Etc/GMT+12"
ZONES = ("UTC", EAST, WEST)


@contextmanager
def here(zone: str) -> Iterator[None]:
    """Lets this process live in a zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


@contextmanager
def java_in(both: Paimon, zone: str) -> Iterator[None]:
    """Lets Paimon's Java live in a zone."""
    zones = both.java.java("java.util.TimeZone")
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        yield
    finally:
        zones.setDefault(before)


def going(copy: Copy, in_ms: int) -> list[str]:
    gone: list[str] = copy.process().plan(copy.table, now=int(time.time() * 1000) + in_ms).to_json()["expire_refs"]
    return gone


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reader", ZONES)
@pytest.mark.parametrize("writer", ZONES)
def test_a_tag_that_java_made_stays_for_its_time_in_every_zone(
    both: Paimon, copy: Copy, writer: str, reader: str
) -> None:
    with java_in(both, writer):
        JavaTable(both.java, copy.folder / "t").tag(MAIN, "hours", 3, "6h")
    with here(reader):
        assert "hours" not in going(copy, 5 * HOUR_MS)
        assert "hours" in going(copy, 2 * DAY_MS)
        copy.expire()
    assert (copy.folder / "t/tag/tag-hours").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reader", ZONES)
@pytest.mark.parametrize("writer", ZONES)
def test_a_tag_of_ours_outlives_the_next_commit_of_java_in_every_zone(
    both: Paimon, copy: Copy, writer: str, reader: str
) -> None:
    with here(writer):
        add_tag(copy.process().places.table_context(copy.table), "brief", "3", HOUR_MS)
    table = JavaTable(both.java, copy.folder / "t")
    with java_in(both, reader):
        table.write(MAIN, [row(7, "seven")])
        table.compact(MAIN, True)
    assert (copy.folder / "t/tag/tag-brief").exists()
    with here(reader):
        assert "brief" not in going(copy, HOUR_MS - MINUTE_MS)
        assert "brief" in going(copy, 3 * DAY_MS)


def test_java_lets_a_tag_of_ours_go_when_its_time_is_over(both: Paimon, copy: Copy) -> None:
    """The test above means something: the same commit deletes a tag whose time is over."""
    add_tag(copy.process().places.table_context(copy.table), "brief", "3", HOUR_MS)
    path = copy.folder / "t/tag/tag-brief"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "tagCreateTime": [said["tagCreateTime"][0] - 1, 1, 1, 0, 0, 0]}))
    table = JavaTable(both.java, copy.folder / "t")
    table.write(MAIN, [row(7, "seven")])
    table.compact(MAIN, True)
    assert not path.exists()


def test_a_time_that_is_over_already_is_refused(copy: Copy) -> None:
    """This machine is four minutes behind the store: a tag of one minute would be over when it is written."""
    before = copy.picture()
    copy.clock.advance(HOUR_MS)
    copy.clock.skew_ms = -4 * MINUTE_MS
    with pytest.raises(UsageError, match="is over already"):
        add_tag(copy.process().places.table_context(copy.table), "brief", "3", MINUTE_MS)
    assert copy.picture() == before


def test_a_tag_whose_file_has_no_time_is_read_as_late_as_any_zone_has_it(copy: Copy) -> None:
    said = json.dumps({"tagCreateTime": [2026, 1, 2, 0, 0], "tagTimeRetained": 3600})
    lasting = tag_lasting(said, "tag")
    assert lasting is not None
    assert lasting.ends_ms(None) == 1_767_312_000_000 + 12 * HOUR_MS + HOUR_MS
