"""The demo lake is what it says: real tables, weeks of commits in order, refs and accidents."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType

from demo import lake
from demo.artemis import DAY_MS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("lake")]  # one process builds it
NOW_MS = 1_790_000_000_000
SNAPSHOTS = {"registry": 121, "telemetry": 102, "config": 9}


def open_lake(folder: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("lake")
    lake.build(made, NOW_MS)
    return made


@pytest.fixture(params=SNAPSHOTS)
def table(folder: Path, request: pytest.FixtureRequest) -> Table:
    return open_lake(folder).load_table(f"artemis.{request.param}")


def named(folder: Path, name: str) -> Table:
    return open_lake(folder).load_table(f"artemis.{name}")


@pytest.mark.full
def test_every_table_has_the_same_number_of_snapshots_on_every_build(table: Table) -> None:
    assert len(table.metadata.snapshots) == SNAPSHOTS[table.name()[-1]]


@pytest.mark.full
def test_timestamps_rise_strictly_and_lie_in_the_last_sixty_days(table: Table) -> None:
    times = [snapshot.timestamp_ms for snapshot in table.metadata.snapshots]
    assert times == sorted(set(times))
    assert NOW_MS - 60 * DAY_MS <= times[0] < NOW_MS - 59 * DAY_MS
    assert NOW_MS - 13 * DAY_MS < times[-1] < NOW_MS


@pytest.mark.full
def test_snapshot_log_and_last_updated_tell_the_same_time_as_the_snapshots(table: Table) -> None:
    by_id = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in table.metadata.snapshots}
    log = [(entry.snapshot_id, entry.timestamp_ms) for entry in table.metadata.snapshot_log]
    rolled_back = [(snapshot, at) for snapshot, at in log if at != by_id[snapshot]]
    assert len(rolled_back) == (1 if table.name()[-1] == "telemetry" else 0)
    assert [at for _, at in log] == sorted(at for _, at in log)
    assert log[-1][1] <= table.metadata.last_updated_ms < NOW_MS


@pytest.mark.full
def test_every_snapshot_can_still_be_read(table: Table) -> None:
    for snapshot in table.metadata.snapshots[::10]:
        files = [task.file.file_path for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()]
        assert all(Path(path.removeprefix("file://")).is_file() for path in files)
    assert table.scan().to_arrow().num_rows > 0


@pytest.mark.full
def test_files_on_disk_are_as_old_as_their_commits(folder: Path) -> None:
    ages = [(NOW_MS / 1000 - path.stat().st_mtime) / 86_400 for path in (folder / "warehouse").rglob("*.parquet")]
    assert min(ages) > 0
    assert max(ages) > 59


@pytest.mark.full
def test_registry_has_monthly_and_audit_tags_and_one_that_expired(folder: Path) -> None:
    refs = named(folder, "registry").metadata.refs
    assert sum(name.startswith("monthly-") for name in refs) == 2
    assert sum(name.startswith("audit-") for name in refs) == 2
    candidate = refs["candidate"]
    tagged = named(folder, "registry").snapshot_by_id(candidate.snapshot_id)
    assert tagged is not None
    assert candidate.max_ref_age_ms is not None
    assert NOW_MS - tagged.timestamp_ms > candidate.max_ref_age_ms


@pytest.mark.full
def test_telemetry_has_a_branch_of_its_own_a_staged_commit_and_one_rolled_back(folder: Path) -> None:
    table = named(folder, "telemetry")
    experiment = table.metadata.refs["experiment"]
    assert experiment.snapshot_ref_type == SnapshotRefType.BRANCH
    assert experiment.min_snapshots_to_keep == 2
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in table.metadata.snapshots}
    reached: set[int | None] = {None}
    for ref in table.metadata.refs.values():
        at: int | None = ref.snapshot_id
        while at not in reached:
            reached.add(at)
            at = parents[at] if at is not None else None
    assert len(set(parents) - reached) == 2


@pytest.mark.full
def test_telemetry_lost_rows_by_delete(folder: Path) -> None:
    operations = [s.summary.operation.value for s in named(folder, "telemetry").metadata.snapshots if s.summary]
    assert operations.count("overwrite") == 9


@pytest.mark.full
def test_the_configuration_beside_it_opens_the_lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    settings = Config().get_catalog_config("lake")
    assert settings is not None
    catalog = load_catalog("lake", **{key: str(value) for key, value in settings.items()})
    assert sorted(catalog.list_tables("artemis")) == [("artemis", name) for name in sorted(SNAPSHOTS)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("hour", [0, 2, 5, 13, 23] if os.environ.get("FIRNLINE_FULL") else [0, 23])
def test_counts_do_not_depend_on_the_hour(tmp_path: Path, hour: int) -> None:
    midnight = NOW_MS - NOW_MS % DAY_MS
    lake.build(tmp_path, midnight + hour * DAY_MS // 24, days=5)
    counts = [len(named(tmp_path, name).metadata.snapshots) for name in ("registry", "telemetry", "config")]
    assert counts == [11, 21, 1]


def test_a_second_lake_in_another_folder_is_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        lake.build(tmp_path / name, NOW_MS, days=3)
    locations = {named(tmp_path / name, "config").location() for name in ("one", "two")}
    assert len(locations) == 2


@pytest.mark.full
def test_the_clock_is_given_back(folder: Path) -> None:
    import datetime
    import time

    from pyiceberg.table import metadata, snapshots, update

    assert folder.is_dir()
    assert snapshots.time is time
    assert update.datetime is datetime.datetime
    assert metadata.datetime is datetime
