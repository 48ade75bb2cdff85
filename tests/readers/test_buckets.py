"""Checkpoints in buckets: real servers list folders that exist by their objects alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from firnline.app.checkpoints import StoredCheckpoints
from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.ops.readers.finding import FoundReaders, find_readers
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket
from tests.readers.written import HEAD, offset


@dataclass(frozen=True)
class CheckpointBucket:
    """A bucket of jobs, and what firnline finds in it."""

    server: Server
    name: str
    objects: Any

    def write(self, key: str, text: str) -> None:
        self.objects.put_object(Bucket=self.name, Key=key, Body=text.encode())

    def found(self, place: str) -> FoundReaders:
        store = ObjectStores(self.server.settings)
        ranges = ObjectRanges(self.server.settings)
        return find_readers(StoredCheckpoints(lambda: store, lambda: ranges), IcebergFormat(store), [place])


@pytest.fixture
def bucket(moto_server: Server) -> CheckpointBucket:
    name = unique("jobs")
    make_bucket(moto_server, name)
    made = CheckpointBucket(moto_server, name, client(moto_server))
    for job, snapshot in (("alerts", 5), ("audit é", 7)):
        made.write(f"checkpoints/{job}/sources/0/offsets/0", offset(1))
        made.write(f"checkpoints/{job}/offsets/0", HEAD + offset(snapshot))
        made.write(f"checkpoints/{job}/commits/0", "v1\n{}")
    made.write("checkpoints/readme.txt", "not a checkpoint")
    made.write("checkpoints/old/notes.txt", "nor is this folder")
    return made


def test_readers_are_found_by_name_and_by_pattern(bucket: CheckpointBucket) -> None:
    everywhere = bucket.found(f"s3://{bucket.name}/checkpoints/*").readers
    assert [(each.at, each.began) for each in everywhere] == [("5", "1"), ("7", "1")]
    assert all(each.moved_ms for each in everywhere)
    (one,) = bucket.found(f"s3a://{bucket.name}/checkpoints/alerts/").readers
    assert one.at == "5"


@pytest.mark.parametrize("place", ["checkpoints/alert", "checkpoint/*", "alerts", "checkpoints/x*"])
def test_a_place_that_no_object_lies_in_stops(bucket: CheckpointBucket, place: str) -> None:
    with pytest.raises(RefusedForSafety, match="missed"):
        bucket.found(f"s3://{bucket.name}/{place}")


def test_a_bucket_that_is_not_there_stops(bucket: CheckpointBucket) -> None:
    with pytest.raises(UnreadableMetadata, match="cannot be seen"):
        bucket.found(f"s3://{unique('none')}/checkpoints/*")
