"""Commits that change properties, statistics, format version and spec. Each returns whether it could do anything."""

from __future__ import annotations

from .backdating import age
from .subject import Subject

RETENTION = ["history.expire.max-snapshot-age-ms", "history.expire.max-ref-age-ms"]


class TableCommits(Subject):
    """Random changes of what belongs to the table as a whole."""

    def properties(self) -> bool:
        update = self._table.updateProperties()
        for key in self._some(RETENTION, 2):
            update = update.set(key, str(age(self._rng)))
        if self._rng.random() < 0.5:
            update = update.set("history.expire.min-snapshots-to-keep", str(self._rng.randint(1, 8)))
        update.commit()
        return True

    def statistics(self) -> bool:
        """Register statistics for one snapshot, or one file for several."""
        path, size = self._materials.statistics_path(".stats")
        no_blobs = self._jvm.java("java.util.ArrayList")()
        for snapshot in self._some(self._ids(self.state()), 2):
            file = self._jvm.iceberg("GenericStatisticsFile")(snapshot, path, size, 8, no_blobs)
            self._table.updateStatistics().setStatistics(file).commit()
        return True

    def partition_statistics(self) -> bool:
        path, size = self._materials.statistics_path("-partition-stats.parquet")
        for snapshot in self._some(self._ids(self.state()), 2):
            builder = self._jvm.iceberg("ImmutableGenericPartitionStatisticsFile").builder()
            file = builder.snapshotId(snapshot).path(path).fileSizeInBytes(size).build()
            self._table.updatePartitionStatistics().setPartitionStatistics(file).commit()
        return True

    # ------------------------------------------------------------ evolution

    def upgrade(self) -> bool:
        version = self.version()
        if version < 3:
            self._table.updateProperties().set("format-version", str(version + 1)).commit()
        return version < 3

    def evolve_spec(self) -> bool:
        bucketed = any(field.name() == "id_bucket" for field in self._table.spec().fields())
        if not bucketed:
            bucket = self._jvm.iceberg("expressions.Expressions").bucket("id", 4)
            self._table.updateSpec().addField("id_bucket", bucket).commit()
        return not bucketed
