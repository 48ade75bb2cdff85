"""How long entries live: as far back as the table keeps history by its policy, whatever single snapshots refs keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

import firnline
from firnline.model.times import DAY_MS
from firnline.testing.tables import QuickFiles, SmallTable

_DAY_S = DAY_MS // 1000
Mark = Callable[[SmallTable, int], None]


@pytest.fixture
def client(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("FIRNLINE_CACHE", redis_url)
    monkeypatch.setenv("FIRNLINE_CACHE_KEY", "the secret of all these tests")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with closing(redis.Redis.from_url(redis_url)) as opened:
        opened.flushall()
        yield opened


def grown(tmp_path: Path, mark: Mark) -> SmallTable:
    """Returns a table with one old snapshot, which is marked, and two young ones: the middle one of them must go."""
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    mark(table, table.append())
    table.now_ms += 20 * DAY_MS
    table.overwrite(table.live())
    table.now_ms += 8 * DAY_MS
    for _ in range(2):
        table.append()
    table.publish()
    return table


def lives_of_entries(client: Any, table: SmallTable, policy: str) -> list[int]:
    Path("firnline.yaml").write_text(policy)
    firnline.open(engine="local").plan(table.location, now=table.now_ms + DAY_MS)
    return [client.ttl(key) for key in client.scan_iter("firnline:unit:*")]


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param(lambda table, oldest: None, id="no ref"),
        pytest.param(lambda table, oldest: table.tag("audit", oldest), id="an old tag"),
        pytest.param(lambda table, oldest: table.branch("dormant", oldest), id="an old branch"),
        pytest.param(
            lambda table, oldest: table.branch("own", oldest, max_snapshot_age_ms=400 * DAY_MS), id="a branch's own age"
        ),
    ],
)
@pytest.mark.parametrize("policy", ["keep: {within: 7d}", "keep: {daily: 7d, tags: [audit]}"])
def test_a_ref_that_keeps_an_old_snapshot_makes_no_entry_live_longer(
    client: Any, tmp_path: Path, mark: Mark, policy: str
) -> None:
    lives = lives_of_entries(client, grown(tmp_path, mark), policy)
    assert lives
    assert max(lives) <= 7 * _DAY_S


def test_entries_live_as_long_as_the_policy_keeps_history(client: Any, tmp_path: Path) -> None:
    table = grown(tmp_path, lambda table, oldest: None)
    assert max(lives_of_entries(client, table, "keep: {within: 25d, last: 1}")) > 8 * _DAY_S
