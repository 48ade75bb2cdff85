"""One measured process: starts a session, does the same work once or twice, and says what it found.

child.py WAY WAREHOUSE TABLE LAST TIMES MEMORY, with WAY one of those in WAYS; `{}` in TABLE is the number of the
time, where each needs a table of its own. Those that begin with "own-" get no session, and load nothing of Spark: so do
firnline's commands; those with "started-" the session that firnline starts itself. Prints JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from firnline.cli.terminal.process import settle_in
from firnline.lake import Lake, open_lake
from firnline.model.locations import identity
from harness.large.tables import START_MS, STEP_MS
from parts.phases import Watch, phases_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = dict[str, Any]


def cutoff(last: int) -> int:
    """The instant at which all snapshots up to number `last` are too old."""
    return START_MS + last * STEP_MS + 1


def digest(paths: Iterable[str]) -> str:
    """The same text for the same set of objects, however they are spelled and sorted."""
    return sha256("\n".join(sorted(map(identity, paths))).encode()).hexdigest()


def firnline_plan(spark: SparkSession | None, table: Path, last: int) -> Callable[[], Found]:
    """Plans and writes the victims to a file; what it returns tells about them."""
    folder = tempfile.TemporaryDirectory()
    out = Path(folder.name, "victims.parquet")
    told = planned(spark, table, last, out)

    def tell() -> Found:
        import pyarrow.parquet

        with folder:
            return {**told(), "digest": digest(pyarrow.parquet.read_table(out).column("path").to_pylist())}

    return tell


def firnline_count(spark: SparkSession | None, table: Path, last: int) -> Callable[[], Found]:
    """The same, and only counts them: a list of millions in this process would be memory that no plan needs."""
    folder = tempfile.TemporaryDirectory()
    told = planned(spark, table, last, Path(folder.name, "victims.parquet"))

    def tell() -> Found:
        with folder:
            return told()

    return tell


def lake_on(spark: SparkSession | None, watch: Watch) -> Lake:
    """Without a session, firnline decides by itself what it needs."""
    return open_lake(progress=watch) if spark is None else open_lake(engine="spark", session=spark)


def planned(spark: SparkSession | None, table: Path, last: int, out: Path) -> Callable[[], Found]:
    watch = Watch()
    view = lake_on(spark, watch).plan(str(table), older_than=cutoff(last), retain_last=1, files=out)
    phases = {} if spark else {"phases": watch.phases({})}
    survey = view.planned.survey
    assert survey is not None
    survey.close()
    read = sum(
        totals.by_kind[kind].bytes
        for totals in (view.plan.kept, view.plan.victims)
        if totals is not None
        for kind in totals.by_kind
        if kind.startswith("manifest")
    )

    def tell() -> Found:
        import pyarrow.parquet

        victims = pyarrow.parquet.read_metadata(out).num_rows
        return {"victims": victims, "objects_opened": view.plan.units_opened, "bytes_read": read, **phases}

    return tell


def iceberg_plan(spark: SparkSession, table: Path, last: int) -> Callable[[], Found]:
    """Iceberg's action without its deletes: it commits, so the table is put back afterwards."""
    from pyspark.sql import DataFrame

    files = iceberg_action(spark, table, last).expireFiles()
    folder = tempfile.TemporaryDirectory()
    DataFrame(files.toDF(), spark).write.mode("overwrite").parquet(folder.name)
    put_back(table)

    def tell() -> Found:
        with folder:
            paths = [row.path for row in spark.read.parquet(folder.name).select("path").collect()]
        return {"victims": len(paths), "digest": digest(paths)}

    return tell


def iceberg_action(spark: SparkSession, table: Path, last: int) -> Any:
    jvm: Any = spark._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, f"lake.db.{table.name}")
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
    return actions.expireSnapshots(loaded).expireOlderThan(cutoff(last)).retainLast(1)


def put_back(table: Path) -> None:
    metadata = table / "metadata"
    first, *later = sorted(metadata.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    for path in later:
        path.unlink()
    (metadata / "version-hint.text").write_text(first.name[1:].split(".")[0])


def firnline_expire(spark: SparkSession | None, table: Path, last: int) -> Callable[[], Found]:
    watch = Watch()
    carried: Any = lake_on(spark, watch).expire(str(table), older_than=cutoff(last), retain_last=1, grace="0s")
    events = {str(event.state): event.at_ms for event in carried.run.events}
    told = {"state": str(carried.run.state), "phases": watch.phases(events)}
    return lambda: {**told, **remaining(table)}


def iceberg_expire(spark: SparkSession, table: Path, last: int) -> Callable[[], Found]:
    iceberg_action(spark, table, last).execute()
    return lambda: remaining(table)


def remaining(table: Path) -> Found:
    """What is left of a table whose files were deleted, without what tools keep for themselves."""
    left = [path for folder in ("data", "metadata") for path in (table / folder).rglob("*") if _counts(path)]
    return {"left": len(left), "digest": digest(str(path.relative_to(table)) for path in left)}


def _counts(path: Path) -> bool:
    return path.is_file() and path.suffix in (".parquet", ".avro") and not path.name.startswith(".")


WAYS: dict[str, Callable[[Any, Path, int], Callable[[], Found]]] = {
    "own-plan": firnline_plan,
    "own-expire": firnline_expire,
    "plain-plan": firnline_plan,
    "started-plan": firnline_plan,
    "firnline-plan": firnline_plan,
    "firnline-count": firnline_count,
    "iceberg-plan": iceberg_plan,
    "firnline-expire": firnline_expire,
    "iceberg-expire": iceberg_expire,
}


def cpu_s() -> float:
    """The CPU time of this process, its JVM and all workers so far: hardly moved by what else the machine does."""
    itself = psutil.Process()
    times = [each.cpu_times() for each in (itself, *itself.children(recursive=True))]
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in times))


def session_for(way: str, warehouse: str, memory: str) -> SparkSession | None:
    """What the way needs. Those of firnline's own choice run as its commands do, in a process of their own."""
    if way.startswith("started-"):
        from firnline.spark.session import session

        settle_in()
        return session(brief=True)
    if not way.startswith("own-"):
        from parts.session import started

        return started(Path(warehouse), memory, plain=way.startswith("plain-"))
    settle_in()
    return None


def stages_of(spark: SparkSession, seen: int) -> list[dict[str, Any]]:
    from parts.session import stages

    return stages(spark, seen)


def main() -> None:
    way, warehouse, table, last, times, memory = sys.argv[1:]
    begun = time.perf_counter()
    spark = session_for(way, warehouse, memory)
    print(json.dumps({"session_s": round(time.perf_counter() - begun, 2)}), flush=True)
    seen = 0
    for turn in range(int(times)):
        start, spent = time.perf_counter(), cpu_s()
        told = WAYS[way](spark, Path(warehouse, "db", table.format(turn)), int(last))
        ended, used = time.perf_counter(), cpu_s()
        ran = stages_of(spark, seen) if spark else []
        seen = 1 + max((each["stage"] for each in ran), default=-1)
        answer = {"seconds": round(ended - start, 2), "cpu_s": round(used - spent, 1), "stages": ran, **told()}
        if ran and way in ("firnline-plan", "plain-plan", "started-plan"):
            answer["phases"] = phases_on_spark(ran)
        print(json.dumps({**answer, "after_s": round(time.perf_counter() - ended, 2)}), flush=True)
    if spark:
        spark.stop()


if __name__ == "__main__":
    main()
