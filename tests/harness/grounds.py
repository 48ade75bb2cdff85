"""What a world stands on: local files and SQLite where nothing is said, or an S3 server and a shared catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.sql import SqlCatalog
from harness.disks import BucketDisk, Disk, LocalDisk
from harness.pointers import CATALOG, Pointers, PostgresPointers


@dataclass(frozen=True)
class Ground:
    """Where tables lie and which catalog names them, as firnline and others reach them.

    `properties` are a PyIceberg user's for this catalog. `keeps_unknown`: the catalog leaves fields in the metadata
    that it does not know (a REST server writes the metadata itself, and drops them).
    """

    root: str
    pointers: Pointers
    catalog: SqlCatalog | RestCatalog
    disk: Disk = field(default_factory=LocalDisk)
    properties: Mapping[str, str] = field(default_factory=dict)
    keeps_unknown: bool = True


def local_ground(folder: Path) -> Ground:
    """Returns new ground under the folder: local files, named by a SQLite database."""
    pointers = Pointers(folder / "catalog.db")
    pointers.create()
    properties = {"type": "sql", "uri": pointers.uri, "warehouse": f"file://{folder}/warehouse"}
    return Ground(f"file://{folder}/warehouse", pointers, SqlCatalog(CATALOG, pointers.uri), properties=properties)


def sql_ground(bucket: str, s3: Mapping[str, str], client: object, database: str) -> Ground:
    """Returns ground on a new bucket and an empty PostgreSQL database."""
    pointers = PostgresPointers(database)
    pointers.create()
    properties = {"type": "sql", "uri": database, "warehouse": bucket, **s3}
    catalog = SqlCatalog(CATALOG, database)
    return Ground(f"{bucket}/warehouse", pointers, catalog, BucketDisk(client), properties)


def rest_ground(bucket: str, s3: Mapping[str, str], client: object, rest: Mapping[str, str], namespace: str) -> Ground:
    """Returns ground on a new bucket, in a namespace of its own of a REST catalog.

    Other writers move the pointers in the server's own database, as one who uses that database as a catalog does.
    """
    pointers = Pointers(Path(rest["database"]), "firnline", namespace)
    pointers.create_namespace()
    properties = {**rest, **s3}
    catalog = RestCatalog(CATALOG, properties)
    return Ground(f"{bucket}/warehouse", pointers, catalog, BucketDisk(client), properties, keeps_unknown=False)
