"""From a setting to a cache, and the secret that makes it safe."""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

import firnline
from firnline.caches.disk import DiskCache
from firnline.caches.opening import OpenedCache, open_memory, shown
from firnline.caches.redis_cache import Breaker, RedisCache
from firnline.caches.seal import own_secret
from firnline.errors import FirnlineError, PolicyError, UnreadableMetadata, UsageError
from firnline.model.files import FileKind
from firnline.model.times import DAY_MS
from firnline.policy.parse import parse_policy
from firnline.testing.dated import date
from firnline.testing.tables import QuickFiles, SmallTable

KEY = "sixteen characters or more"


def opened(tmp_path: Path, setting: str, key: str | None = None) -> OpenedCache:
    return open_memory(setting, key, tmp_path / "config" / "cache.key", tmp_path / "default")


def test_each_setting_opens_its_cache(tmp_path: Path) -> None:
    assert opened(tmp_path, "off").cache is None
    assert opened(tmp_path, "disk").cache == DiskCache(str(tmp_path / "default"))
    assert opened(tmp_path, str(tmp_path / "here")).cache == DiskCache(str(tmp_path / "here" / "firnline-units"))
    assert opened(tmp_path, "redis://127.0.0.1:1/0", KEY).cache == RedisCache("redis://127.0.0.1:1/0")


def test_redis_without_a_shared_key_is_not_used(tmp_path: Path) -> None:
    memory = opened(tmp_path, "redis://me:hunter2@127.0.0.1:1/0")
    assert memory.cache is None
    assert "FIRNLINE_CACHE_KEY" in memory.trouble
    assert "hunter2" not in repr(memory)


@pytest.mark.parametrize(("setting", "key"), [("memcached://me:hunter2@host", KEY), ("disk", "hunter2")])
def test_what_means_nothing_is_an_error_without_secrets(tmp_path: Path, setting: str, key: str) -> None:
    with pytest.raises(UsageError) as refused:
        opened(tmp_path, setting, key)
    assert "hunter2" not in refused.value.message + refused.value.hint


def test_an_address_is_shown_without_who_and_how() -> None:
    assert shown("rediss://me:hunter2@host:6379/3?password=hunter2") == "rediss://host:6379/3"


def test_the_secret_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "config" / "cache.key"
    with get_context("spawn").Pool(8) as pool:
        made = pool.map(own_secret, [path] * 32)
    assert len(set(made)) == 1
    assert made[0] is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["cache.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_secret_that_others_may_read_or_write_is_none(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "config" / "cache.key"
    assert own_secret(path)
    path.chmod(mode)
    assert own_secret(path) is None
    memory = opened(tmp_path, "disk")
    assert memory.cache is None
    assert str(path) in memory.trouble


def test_an_empty_secret_is_none(tmp_path: Path) -> None:
    path = tmp_path / "cache.key"
    path.touch(0o600)
    assert own_secret(path) is None


def test_only_the_top_of_a_file_names_a_cache() -> None:
    assert parse_policy("cache: off").settings["cache"].value == "off"
    with pytest.raises(PolicyError, match="unknown key 'cache'"):
        parse_policy("catalogs: {lake: {cache: off}}")


# ---------------------------------------------------------------- the breaker


def test_a_breaker_opens_after_failures_in_a_row_and_tries_again_alone() -> None:
    now = [0.0]
    breaker = Breaker(failures=3, pause_s=30, clock=lambda: now[0])
    for _ in range(2):
        breaker.failed()
    breaker.worked()
    for _ in range(3):
        assert breaker.allows()
        breaker.failed()
    assert not breaker.allows()
    now[0] = 31.0
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    breaker.failed()
    now[0] = 62.0
    assert breaker.allows()
    breaker.worked()
    assert breaker.allows()


# ---------------------------------------------------------------- a whole lake


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallTable:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for name in ("FIRNLINE_CACHE", "FIRNLINE_CACHE_KEY", "FIRNLINE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    for _ in range(8):
        table.append()
    table.overwrite(table.live())
    table.publish()
    return table


def victims(table: SmallTable) -> list[str]:
    view = firnline.open(engine="local").plan(table.location, now=table.now_ms + 30 * DAY_MS)
    return sorted(each["path"] for each in view.files())


def test_plans_remember_in_the_users_cache_folder_unless_told_otherwise(
    table: SmallTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    without = victims(table)
    assert without
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "config").exists()
    monkeypatch.delenv("FIRNLINE_CACHE")
    assert victims(table) == victims(table) == without
    assert any((tmp_path / "cache" / "firnline" / "units").iterdir())
    (tmp_path / "firnline.yaml").write_text(f"cache: {tmp_path}/elsewhere\n")
    assert victims(table) == without
    assert any((tmp_path / "elsewhere").iterdir())


def test_a_cache_that_was_asked_for_and_is_not_used_is_said(
    table: SmallTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FIRNLINE_CACHE", "redis://me:hunter2@127.0.0.1:1/0")
    with caplog.at_level(logging.WARNING):
        assert victims(table)
    assert "FIRNLINE_CACHE_KEY" in caplog.text
    assert "hunter2" not in caplog.text


OLD_MS = 1_700_000_000_000


def test_damage_that_only_the_kernel_dates_is_seen_by_a_plan(table: SmallTable) -> None:
    victims(table)
    unit = next(path for path, made in table.made.items() if made.kind is FileKind.MANIFEST)
    path = Path(unit.removeprefix("file://"))
    before = path.stat()
    time.sleep(0.01)  # the kernel's clock ticks every few milliseconds
    path.write_bytes(bytes(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UnreadableMetadata):
        victims(table)


def test_check_reads_afresh_what_a_plan_remembers(table: SmallTable) -> None:
    """Damage that leaves a file's length, time and place as they were is not seen by a plan, which knows the truth of
    before; whoever asks about the files themselves sees it.
    """
    unit = next(path for path, made in table.made.items() if made.kind is FileKind.MANIFEST)
    path = Path(unit.removeprefix("file://"))
    date(path, OLD_MS)
    planned = victims(table)
    path.write_bytes(bytes(path.stat().st_size))
    date(path, OLD_MS)
    assert victims(table) == planned
    with pytest.raises(UnreadableMetadata):
        firnline.open(engine="local").check(table.location)


def test_no_entry_tells_of_a_secret(table: SmallTable, tmp_path: Path) -> None:
    victims(table)
    secret = (tmp_path / "config" / "firnline" / "cache.key").read_bytes().strip()
    entries = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert sum(map(len, entries)) > 1_000
    assert not any(secret in entry or bytes.fromhex(secret.decode()) in entry for entry in entries)


def test_errors_of_a_walk_pass_through(table: SmallTable) -> None:
    victims(table)
    unit = next(path for path, made in table.made.items() if made.kind is FileKind.MANIFEST)
    Path(unit.removeprefix("file://")).unlink()
    with pytest.raises(FirnlineError) as refused:
        victims(table)
    assert json.dumps(unit)[1:-1] in refused.value.message
