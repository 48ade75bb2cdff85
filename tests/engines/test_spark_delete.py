"""Deletes on executors, on a real S3 server: conditions travel with the keys, and the budget is shared out."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from firnline.errors import LeaseHeld, NoSuchBucket
from firnline.ports.delete import Doomed, Fate, always
from firnline.spark.delete import SparkDeleteMany
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.throttle import Lanes, Throttle
from harness.servers.fixtures import Bucket

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def filled(bucket: Bucket, number: int) -> tuple[ObjectStores, list[str]]:
    store = ObjectStores(bucket.server.settings)
    keys = [f"{bucket.uri}/lake/{each:04d}" for each in range(number)]
    for key in keys:
        store.put(key, b"x")
    return store, keys


@pytest.mark.parametrize("conditional", [True, False], ids=["If-Match", "read before"])
def test_keys_with_and_without_etags(spark_session: SparkSession, moto_bucket: Bucket, conditional: bool) -> None:
    store, keys = filled(moto_bucket, 12)
    etag = store.head(keys[0]).etag
    doomed = [Doomed(keys[0], etag), Doomed(keys[1], '"stale"'), *map(Doomed, keys[2:10]), Doomed(f"{keys[0]}/")]
    deleter = ObjectDelete(moto_bucket.server.settings, conditional=conditional)
    said = SparkDeleteMany(spark_session).delete_many(doomed, deleter, always)
    assert [each.key for each in said] == [each.key for each in doomed]
    assert [each.fate for each in said] == [Fate.DELETED, Fate.CHANGED, *[Fate.DELETED] * 8, Fate.FAILED]
    assert sorted(each.key for each in store.list(f"{moto_bucket.uri}/lake")) == [keys[1], *keys[10:]]


class Watched(ObjectDelete):
    """Remembers, here and not on executors, into how many parts it was divided."""

    parts = 0

    def share(self, parts: int) -> ObjectDelete:
        self.parts = parts
        return super().share(parts)


def test_every_task_has_its_share_of_the_budget(spark_session: SparkSession, moto_bucket: Bucket) -> None:
    doomed = [Doomed(f"{moto_bucket.uri}/lake/{each}") for each in range(4_000)]
    deleter = Watched(moto_bucket.server.settings, throttle=Throttle(Lanes(defaults={})))
    said = SparkDeleteMany(spark_session).delete_many(doomed, deleter, always)
    assert deleter.parts == spark_session.sparkContext.defaultParallelism
    assert [(each.key, each.fate) for each in said] == [(each.key, Fate.DELETED) for each in doomed]


def test_without_the_lease_nothing_is_sent(spark_session: SparkSession, moto_bucket: Bucket) -> None:
    store, keys = filled(moto_bucket, 2)

    def lost() -> None:
        raise LeaseHeld("as asked")

    deleter = ObjectDelete(moto_bucket.server.settings)
    with pytest.raises(LeaseHeld):
        SparkDeleteMany(spark_session).delete_many([Doomed(key) for key in keys], deleter, lost)
    assert len(list(store.list(f"{moto_bucket.uri}/lake"))) == 2


def test_an_executor_whose_time_is_over_sends_nothing(spark_session: SparkSession, moto_bucket: Bucket) -> None:
    """It may be one that was cut off, and comes back when another process has the lease."""
    store, keys = filled(moto_bucket, 2)
    deleter, many = ObjectDelete(moto_bucket.server.settings), SparkDeleteMany(spark_session)
    with pytest.raises(LeaseHeld, match="an executor had files left"):
        many.delete_many([Doomed(key) for key in keys], deleter, always, lambda: 0)
    assert len(list(store.list(f"{moto_bucket.uri}/lake"))) == 2
    assert len(many.delete_many([Doomed(key) for key in keys], deleter, always, lambda: 600_000)) == 2
    assert not list(store.list(f"{moto_bucket.uri}/lake"))


def test_a_store_that_takes_no_delete_any_more_says_so_as_everywhere(
    spark_session: SparkSession, moto_bucket: Bucket
) -> None:
    deleter = ObjectDelete(moto_bucket.server.settings)
    with pytest.raises(NoSuchBucket, match="there is no bucket s3://no-such-bucket"):
        SparkDeleteMany(spark_session).delete_many([Doomed("s3://no-such-bucket/lake/x")], deleter, always)
