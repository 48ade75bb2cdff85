"""Where a table's files lie: from what a manifest says of a file to its path."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon import fields
from firnline.formats.paimon.partitions import DEFAULT_NAME, folder_name, value_text
from firnline.formats.paimon.rows import partition_values
from firnline.formats.paimon.schema import Schema, Type
from firnline.model.locations import join

POSTPONED = -2


@dataclass(frozen=True, slots=True)
class Layout:
    """The options that decide on paths, all of them the table's for good once it has data."""

    location: str
    partition: tuple[tuple[str, Type], ...]
    legacy: bool
    default_name: str
    data_folder: str
    index_beside_data: bool
    changelog_prefix: str

    @staticmethod
    def of(location: str, schema: Schema) -> Layout:
        options = schema.options
        return Layout(
            location,
            schema.partition,
            fields.flag(options, "partition.legacy-name", True, schema.where),
            options.get("partition.default-name", DEFAULT_NAME),
            _data_folder(schema),
            fields.flag(options, "index-file-in-data-file-dir", False, schema.where),
            options.get("changelog-file.prefix", "changelog-"),
        )

    def bucket_folder(self, partition: bytes, bucket: int) -> str:
        """Returns the folder of a bucket. Raises where the partition's bytes make no sense."""
        values = partition_values(partition, tuple(kind for _, kind in self.partition))
        parts = [
            folder_name(key, value_text(value, kind, self.legacy) or self.default_name)
            for (key, kind), value in zip(self.partition, values, strict=True)
        ]
        name = "bucket-postpone" if bucket == POSTPONED else f"bucket-{bucket}"
        return join(self.location, *([self.data_folder] if self.data_folder else []), *parts, name)

    @property
    def manifest_folder(self) -> str:
        return join(self.location, "manifest")

    @property
    def index_folder(self) -> str:
        return join(self.location, "index")

    @property
    def statistics_folder(self) -> str:
        return join(self.location, "statistics")


def _data_folder(schema: Schema) -> str:
    """Returns the folder within the table's that partitions lie in; nothing for the table's own.

    Raises UnsupportedFormat for one that begins with a slash: Paimon takes it for a path from the root of the store.
    """
    folder = schema.options.get("data-file.path-directory", "")
    if folder.startswith("/"):
        raise UnsupportedFormat(
            f"{schema.where}: data-file.path-directory is {folder!r}, which is no folder of the table",
            hint="nothing was changed",
        )
    return folder
