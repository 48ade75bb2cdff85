"""A tier that fails while a run hands over: nothing is committed, the run stays as it was, and goes on later."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from firnline.app.places import now_ms
from firnline.errors import FirnlineError
from firnline.testing.faults import Answer, PortRequest
from tests.tiers.cutting import passing_through
from tests.tiers.lakes import TieredLake, tiered_lake

DAY_MS = 86_400_000


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        made.append("t", 1)
        made.append("t", 2)
        made.overwrite("t", 7, 8)
        yield made


@dataclass
class Refusing:
    """Turns away effects on keys with a text in them: each once, or all of them after the first few."""

    text: str
    error: Callable[[], Exception]
    after: int | None = None
    seen: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=Lock)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.text in request.key and request.changes:
            with self.lock:
                self.seen.append(request.key)
                due = len(self.seen) > self.after if self.after is not None else self.seen.count(request.key) == 1
            if due:
                raise self.error()
        return request.send()


def _full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def _unreachable() -> OperationalError:
    return OperationalError("COMMIT", {}, Exception("server closed the connection unexpectedly"))


def _check_unchanged(lake: TieredLake, metadata: str) -> None:
    assert lake.table("t").metadata_location == metadata
    assert [each.state for each in lake.firnline().runs("lake.db.t")] == ["planned"]


def _check_end(lake: TieredLake, before: dict[int, list[int]]) -> None:
    live = lake.rows_by_snapshot("t")
    assert len(live) == 1
    assert lake.cold_rows("t") == {each: rows for each, rows in before.items() if each not in live}
    assert [each.state for each in lake.firnline().runs("lake.db.t")] == ["done"]


def test_every_copy_fails_once(lake: TieredLake, monkeypatch: pytest.MonkeyPatch) -> None:
    before, metadata = lake.rows_by_snapshot("t"), lake.table("t").metadata_location
    refusing, tries = Refusing("/colder/", _full), 0
    with passing_through(refusing, lake.folder, monkeypatch):
        with pytest.raises(FirnlineError):
            lake.expire("t")
        while lake.table("t").metadata_location == metadata:
            _check_unchanged(lake, metadata)
            tries += 1
            assert tries < 20
            with suppress(FirnlineError):
                lake.firnline().resume("lake.db.t")
    _check_end(lake, before)
    assert sum(each.endswith(".parquet") for each in refusing.seen) == 2 * len(list(lake.cold_root.rglob("*.parquet")))


@pytest.mark.parametrize("after", [0, 3, 6])
@pytest.mark.sampled(1)
def test_a_tier_that_is_full(lake: TieredLake, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    before, metadata = lake.rows_by_snapshot("t"), lake.table("t").metadata_location
    with passing_through(Refusing("/colder/", _full, after), lake.folder, monkeypatch), pytest.raises(FirnlineError):
        lake.expire("t")
    _check_unchanged(lake, metadata)
    lake.firnline().resume("lake.db.t")
    _check_end(lake, before)


def test_a_catalog_of_a_tier_that_gives_no_answer(lake: TieredLake, monkeypatch: pytest.MonkeyPatch) -> None:
    before, metadata = lake.rows_by_snapshot("t"), lake.table("t").metadata_location
    gone = Refusing("cold.db", _unreachable, 0)
    with passing_through(gone, lake.folder, monkeypatch), pytest.raises(FirnlineError):
        lake.expire("t")
    assert gone.seen
    _check_unchanged(lake, metadata)
    lake.firnline().resume("lake.db.t")
    _check_end(lake, before)


def test_a_tier_that_is_named_after_the_plan(lake: TieredLake) -> None:
    """What was planned to be thrown away stays: the operator wants it handed over now."""
    before, policy = lake.rows_by_snapshot("t"), lake.policy
    lake.policy = policy.replace("archive: cold", "archive: off")
    run = lake.firnline().plan("lake.db.t", save=True, older_than=now_ms(), retain_last=1, grace="0s").plan.run
    lake.policy = policy
    assert lake.firnline().commit(str(run)).state == "cancelled"
    assert lake.rows_by_snapshot("t") == before


def test_a_snapshot_that_becomes_the_newest_of_its_day(lake: TieredLake) -> None:
    """1. Of a day's two snapshots the newer one is kept: the older one need not be handed over.
    2. Another engine takes the newer one out.
    3. The run commits: the older one is all that is left of that day.
    """
    lake.policy = lake.policy.replace("/colder\n", "/colder\n    thin: daily\n")
    first, second, *_ = _some_days_ago(lake)
    lake.table("t").manage_snapshots().create_tag(second, "keep").commit()
    run = lake.firnline().plan("lake.db.t", save=True, older_than=now_ms(), retain_last=1, grace="0s").plan
    assert str(first) in [each.id for each in run.expire]
    assert run.archive is None or str(first) not in run.archive.snapshots
    lake.table("t").manage_snapshots().remove_tag("keep").commit()
    lake.table("t").maintenance.expire_snapshots().by_id(second).commit()
    before = lake.rows_by_snapshot("t")
    lake.firnline().commit(str(run.run))
    assert first in lake.rows_by_snapshot("t") or first in lake.cold_rows("t")
    lake.expire("t")
    assert lake.cold_rows("t")[first] == before[first]


def _some_days_ago(lake: TieredLake) -> list[int]:
    """Dates the table's first two snapshots on one day, and returns all, oldest first."""
    path = Path(lake.table("t").metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    by_age = sorted(document["snapshots"], key=lambda each: each["sequence-number"])
    noon = (now_ms() // DAY_MS - 5) * DAY_MS + DAY_MS // 2
    times = {each["snapshot-id"]: noon + number for number, each in enumerate(by_age[:2])}
    for each in (*document["snapshots"], *document["snapshot-log"]):
        each["timestamp-ms"] = times.get(each["snapshot-id"], each["timestamp-ms"])
    path.write_text(json.dumps(document))
    return [each["snapshot-id"] for each in by_age]
