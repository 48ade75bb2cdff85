"""Random tables, as Iceberg's Java API makes them: whatever two runs expire is read from the tier as it was in live."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.pointers import Pointers
from harness.servers.fixtures import unique
from tests.judge.firnline_side import ENGINE
from tests.judge.jvm import Jvm
from tests.judge.options import questions
from tests.judge.worlds import World, build
from tests.tiers.java_spark import JavaSpark
from tests.tiers.real_files import RealFiles
from tests.tiers.shores import Shore, on_files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tiers-spark")]
SURE = [7, 20, 29]
SEEDS = range(200) if os.environ.get("FIRNLINE_FULL") else SURE
"""The three together have every format version, manifests named inline, vectors, both kinds of deletes and branches."""


@pytest.fixture
def shore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shore:
    made = on_files(unique("worlds").replace("-", "_"), tmp_path)
    made.configure(monkeypatch)
    return made


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.full
def test_what_two_runs_expire_is_read_from_the_tier(
    spark: JavaSpark, shore: Shore, seed: int, record_property: Callable[[str, object], None]
) -> None:
    world = build(spark.jvm, seed, shore.folder / "t", RealFiles)
    pointers, tier = (Pointers(shore.folder / f"{name}.db", name) for name in (shore.lake_name, shore.cold_name))
    pointers.create()
    pointers.register("t", f"file://{world.metadata}")
    before = JavaHistory(spark.jvm, f"file://{world.metadata}")
    rows = {each: before.rows(each) for each in before.readable}
    shore.firnline("expire", shore.live_table(), *_random_options(world), "--engine", ENGINE)
    shore.expire(ENGINE)
    live = JavaHistory(spark.jvm, str(pointers.get("t")))
    gone = before.snapshots - live.snapshots
    assert gone or seed not in SURE
    if not gone:  # the settings of its branches keep every snapshot
        return
    cold = JavaHistory(spark.jvm, str(tier.get("t")))
    assert cold.snapshots == gone
    assert {each: cold.rows(each) for each in cold.readable} == {each: rows[each] for each in before.readable & gone}
    _assert_same_times(before, cold)
    for each in (shore.live_table(), shore.cold_table()):
        assert shore.firnline("check", each, "--engine", ENGINE)["sound"], each
    record_property("count: snapshots of random tables in a tier", {"read": len(cold.readable), "all": len(gone)})


def _random_options(world: World) -> list[str]:
    """Returns what a random operator asks for; grace is none."""
    asked = questions(world)[-1]
    said = {"--older-than": asked.older_than, "--retain-last": asked.retain_last}
    chosen = [str(each) for name, value in said.items() if value is not None for each in (name, value)]
    return [*chosen, "--grace", "0s", "--blast-radius", "100%", "--yes"]


def _assert_same_times(before: JavaHistory, cold: JavaHistory) -> None:
    """Asserts that time travel finds the same in both; but for times after all that the tier knows."""
    ends = cold.log[-1][0] if cold.log else 0
    for at in {at for at, _ in before.log if at <= ends}:
        assert cold.as_of(at) == before.as_of(at)


class JavaHistory:
    """All snapshots of one metadata file, read by Iceberg's own Java."""

    def __init__(self, jvm: Jvm, metadata: str) -> None:
        self._jvm = jvm
        files = jvm.iceberg("hadoop.HadoopFileIO")(jvm.java("org.apache.hadoop.conf.Configuration")())
        self._table = jvm.iceberg("BaseTable")(jvm.iceberg("StaticTableOperations")(metadata, files), "t")
        self._document = jvm.document(self._table.operations().current())

    @property
    def snapshots(self) -> set[int]:
        return {each["snapshot-id"] for each in self._document["snapshots"]}

    @property
    def readable(self) -> set[int]:
        """The snapshots that Java can read: not those that name their manifests themselves (1.12.0)."""
        return {each["snapshot-id"] for each in self._document["snapshots"] if "manifest-list" in each}

    @property
    def log(self) -> list[tuple[int, int]]:
        return [(each["timestamp-ms"], each["snapshot-id"]) for each in self._document["snapshot-log"]]

    def rows(self, snapshot: int) -> list[str]:
        text = self._jvm.function("java.lang.Object", "toString", "java.lang.String")
        scan = self._jvm.iceberg("data.IcebergGenerics").read(self._table).useSnapshot(snapshot).build()
        return sorted(self._jvm.texts(scan, text))

    def as_of(self, at: int) -> int:
        return int(self._jvm.iceberg("util.SnapshotUtil").snapshotIdAsOfTime(self._table, at))
