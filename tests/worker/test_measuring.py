"""What a store takes is measured where the operator says so, and the budget is a share of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.policy.limits import StoreLimits
from firnline.policy.parse import parse_policy
from firnline.policy.worker.keys import worker_policy
from firnline.stores.objects import ObjectStores
from firnline.stores.probe import reads_per_second
from firnline.stores.throttle import Lanes, usual_rates
from tests.worker.lakes import snapshots, worked_lake, worker


def test_it_tells_how_often_an_object_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    store, at = ObjectStores(), iter(range(100_000))
    assert reads_per_second(store, f"file://{tmp_path}/some") is None
    (tmp_path / "some" / "object").write_bytes(b"x")
    ticks = reads_per_second(store, f"file://{tmp_path}/some", lambda: next(at) / 100)  # each look takes 10 ms
    assert ticks is not None
    assert 50 <= ticks <= 105


def test_what_was_said_of_a_place_goes_before_what_was_measured() -> None:
    lanes = Lanes(StoreLimits.of(parse_policy("stores: {s3://a: {reads-per-second: 7}}").stores), usual_rates(1_000))
    assert lanes.reads("s3://a/t").rate == 7
    assert lanes.reads("s3://b/t").rate == 1_000
    assert lanes.reads("file:///b/t").rate == 1_000
    assert lanes.deletes("s3://b/t").rate == 3_500
    assert Lanes(StoreLimits(), usual_rates(None)).reads("s3://b/t").rate == 5_500


@pytest.mark.parametrize(("said", "meant"), [("measured", "measured"), ("usual", None), ("500", 500)])
def test_the_file_says_whether(said: str, meant: object) -> None:
    assert worker_policy(parse_policy(f"worker: {{iops: {said}}}").worker).iops == meant


def test_a_worker_measures_once_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worked_lake(tmp_path, monkeypatch, tables=1) as lake:
        lake.policy = lake.policy.replace("every: 1s", "every: 1s, iops: measured")
        rounds: list[object] = []
        working = worker(lake, rounds)  # type: ignore[arg-type]
        working.run(once=True)
        first = working._measured
        working.run(once=True)
        assert working._measured == first
        assert first is not None
        assert snapshots(lake, "t0") == 2
