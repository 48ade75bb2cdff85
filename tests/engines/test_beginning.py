"""What PySpark does before and after every task is cheap: an executor does not read its zip archives again, and still
imports from them; its collector passes over modules, and still collects what tasks leave.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from firnline.spark.engine import SparkEngine
from firnline.spark.executors.beginning import begin_task, forget_zip_importers, set_modules_aside


def zip_importers() -> list[str]:
    return [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]


def test_what_was_imported_stays_and_what_was_not_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "packed.zip", "w") as archive:
        for name in ("first", "second"):
            archive.writestr(f"firnline_packed/{name}.py", f"NAME = {name!r}\n")
        archive.writestr("firnline_packed/__init__.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    from firnline_packed import first  # type: ignore[import-not-found]

    assert zip_importers()
    forget_zip_importers()
    assert zip_importers() == []
    from firnline_packed import second  # type: ignore[import-not-found]

    assert (first.NAME, second.NAME) == ("first", "second")
    for name in [name for name in sys.modules if name.startswith("firnline_packed")]:
        monkeypatch.delitem(sys.modules, name)
    forget_zip_importers()


class Left:
    """What a task leaves behind; it holds itself, so that only the collector takes it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_modules_are_made_of_is_set_aside_and_what_tasks_leave_is_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("firnline.spark.executors.beginning._aside", set())
    try:
        set_modules_aside()
        aside = gc.get_freeze_count()
        assert len(gc.get_objects()) < aside / 10
        left = weakref.ref(Left())
        begin_task()
        assert gc.get_freeze_count() <= aside, "nothing was loaded since; some of what was set aside may have ended"
        gc.collect()
        assert left() is None
        kept = Left()
        left = weakref.ref(kept)
        monkeypatch.setitem(sys.modules, "firnline_loaded_later", sys)
        aside, loaded = gc.get_freeze_count(), [[] for _ in range(5_000)]
        begin_task()
        assert gc.get_freeze_count() > aside + len(loaded) / 2
        del kept  # set aside while it was held, as what another program's tasks left
        monkeypatch.setitem(sys.modules, "firnline_loaded_last", sys)
        begin_task()
        assert left() is None
    finally:
        gc.unfreeze()


@pytest.mark.full
def test_a_worker_of_spark_sets_aside_what_it_loaded(spark: SparkEngine) -> None:
    def look(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        begin_task()
        yield pa.record_batch([pa.array([gc.get_freeze_count()], pa.int64())], names=["aside"])

    rows = spark.session.range(1, numPartitions=1).mapInArrow(look, "aside long").collect()
    assert rows[0]["aside"] > 20_000
