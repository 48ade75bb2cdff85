"""Real files on disk and the Java objects that describe them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .jvm import Jvm
from .places import canonical

AWKWARD = [" b", "%20b", "+b", "é", "=b", "#b"]
FIRST_BUCKETS = 4


@dataclass(frozen=True)
class Material:
    """One data or delete file: its path as the table writes it and Java's description of it."""

    path: str
    java: Any
    spec_id: int
    partition: str


class Materials:
    """Makes the files of one table, inside its folder and outside it, each with the size that Java is told."""

    def __init__(self, jvm: Jvm, rng: random.Random, table: Any, location: str, elsewhere: str) -> None:
        self._jvm = jvm
        self._rng = rng
        self._table = table
        self._location = location
        self._elsewhere = elsewhere
        self._made = 0
        self.data: dict[str, Material] = {}
        self.deletes: dict[tuple[str, str], Any] = {}

    def data_file(self) -> Material:
        spec = self._table.spec()
        partition = self._partition(spec)
        path, size = self._file(f"data/{partition}".rstrip("/"), ".parquet")
        return self._told(spec, partition, path, size)

    def _told(self, spec: Any, partition: str, path: str, size: int) -> Material:
        builder = self._jvm.iceberg("DataFiles").builder(spec).withPath(path).withFileSizeInBytes(size)
        builder = builder.withRecordCount(1)
        java = builder.withPartitionPath(partition).build() if partition else builder.build()
        self.data[path] = Material(path, java, spec.specId(), partition)
        return self.data[path]

    def equality_deletes(self) -> Any:
        spec = self._table.spec()
        builder = self._jvm.iceberg("FileMetadata").deleteFileBuilder(spec)
        ids = self._jvm.gateway.new_array(self._jvm.gateway.jvm.int, 1)
        ids[0] = 1
        return self._finish_deletes(builder.ofEqualityDeletes(ids), self._partition(spec), "-eq.parquet")

    def position_deletes(self, of: Material) -> Any:
        return self._finish_deletes(self._deletes_of(of), of.partition, "-pos.parquet")

    def deletion_vectors(self, of: list[Material]) -> list[Any]:
        """One Puffin file that holds a deletion vector for each data file."""
        share = self._rng.randint(20, 60)
        path, size = self._file("data", "-dv.puffin", share * len(of))
        return [self._vector(path, size, data, share, index) for index, data in enumerate(of)]

    def statistics_path(self, suffix: str) -> tuple[str, int]:
        return self._file("metadata", suffix)

    def _vector(self, path: str, size: int, data: Material, share: int, index: int) -> Any:
        builder = self._deletes_of(data).withPath(path).withFormat("puffin").withFileSizeInBytes(size)
        builder = builder.withRecordCount(1).withReferencedDataFile(data.path)
        builder = builder.withContentOffset(self._offset(share, index)).withContentSizeInBytes(share)
        java = (builder.withPartitionPath(data.partition) if data.partition else builder).build()
        self.deletes[path, data.path] = java
        return java

    def _offset(self, share: int, index: int) -> int:
        return share * index

    def _deletes_of(self, data: Material) -> Any:
        spec = self._table.specs().get(data.spec_id)
        return self._jvm.iceberg("FileMetadata").deleteFileBuilder(spec).ofPositionDeletes()

    def _finish_deletes(self, builder: Any, partition: str, suffix: str) -> Any:
        path, size = self._file("data", suffix)
        builder = builder.withPath(path).withFileSizeInBytes(size).withRecordCount(1)
        java = (builder.withPartitionPath(partition) if partition else builder).build()
        self.deletes[path, "null"] = java
        return java

    def _partition(self, spec: Any) -> str:
        """A partition in the form `p=a/id_bucket=2`; empty for an unpartitioned spec."""
        values = {"p": self._rng.choice("abc"), "id_bucket": str(self._rng.randrange(FIRST_BUCKETS))}
        names = [field.name() for field in spec.fields()]
        return "/".join(f"{name}={values[name]}" for name in names)

    def _file(self, folder: str, suffix: str, size: int | None = None) -> tuple[str, int]:
        self._made += 1
        root = self._elsewhere if self._rng.random() < 0.1 else self._location
        awkward = self._rng.choice(AWKWARD) if self._rng.random() < 0.1 else ""
        path = f"{root}/{folder}/{self._made:05}{awkward}{suffix}"
        size = size or self._rng.randint(20, 400)
        on_disk = Path(canonical(path))
        on_disk.parent.mkdir(parents=True, exist_ok=True)
        on_disk.write_bytes(b"x" * size)
        return path, size
