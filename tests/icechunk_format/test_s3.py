"""Repositories in a bucket, as the library writes them there."""

from __future__ import annotations

from typing import Any

import icechunk
import pytest

from firnline.formats.icechunk import ids
from firnline.formats.icechunk.reading.detection import has_repository
from firnline.formats.icechunk.reading.objects import chunks_at, snapshot_at
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.stores.objects import ObjectStores
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .growing import SPECS, answers, grown


def in_bucket(server: Server, bucket: str, prefix: str = "lake/r") -> Any:
    settings = server.settings
    return icechunk.s3_storage(
        bucket=bucket,
        prefix=prefix,
        region=settings["s3.region"],
        endpoint_url=settings["s3.endpoint"],
        access_key_id=settings["s3.access-key-id"],
        secret_access_key=settings["s3.secret-access-key"],
        allow_http=True,
        force_path_style=True,
    )


@pytest.mark.full
@pytest.mark.parametrize("spec", SPECS)
def test_a_repository_in_a_bucket(moto_server: Server, spec: int) -> None:
    bucket = make_bucket(moto_server, unique("ice")).removeprefix("s3://")
    store, location = ObjectStores(moto_server.settings), f"s3://{bucket}/lake/r"
    assert not has_repository(store, location)
    made = grown(in_bucket(moto_server, bucket), 2, spec)
    assert has_repository(store, location)
    said, found = answers(made), read_repository(store, location)
    assert (found.branches, found.tags) == (said["branches"], said["tags"])
    kept = {each.id for ref in found.refs for each in found.ancestry(ref.snapshot)}
    assert kept == set(said["manifests"])
    manifests = {each for name in kept for each in snapshot_at(store, location, name).manifests}
    chunks = {name for each in manifests for name in ids.names_of(chunks_at(store, location, each).ids)}
    lying = {each.key.rpartition("/")[2] for each in store.list(f"{location}/chunks")}
    assert chunks <= lying
    assert len(lying - chunks) == said["garbage"][2]
