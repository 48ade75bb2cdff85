"""Copies keep their contract from and to every kind of store."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from firnline.ports.copying import Copy, Verify
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.verifying import ObjectVerify
from firnline.testing.copies.contract import CopyContract
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket
from tests.stores.test_buckets import InMemory
from tests.stores.test_local import OnDisk
from tests.stores.test_s3 import OnMoto, OnVersitygw


def another_way(served: Server) -> dict[str, str]:
    """Returns settings that reach the same server in another way: it may not copy by itself then."""
    return {**served.settings, "s3.connect-timeout": "6"}


class TestFilesToFiles(OnDisk, CopyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture
    def copier(self) -> Copy:
        return ObjectCopy()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


class TestMemoryToMemory(InMemory, CopyContract):
    @pytest.fixture
    def cold(self) -> str:
        return f"memory://{uuid4().hex}/cold"

    @pytest.fixture
    def copier(self) -> Copy:
        return ObjectCopy()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


class OnOneServer(CopyContract):
    """Two buckets of one server, which copies by itself."""

    @pytest.fixture
    def cold(self, served: Server) -> str:
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def copier(self, served: Server) -> Copy:
        return ObjectCopy(served.settings, served.settings)

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


class Streamed(OnOneServer):
    """The same two buckets, as if they were on two servers."""

    @pytest.fixture
    def copier(self, served: Server) -> Copy:
        return ObjectCopy(served.settings, another_way(served))


@pytest.mark.full("test_many_that_copy_the_same_at_once_agree")
class TestMotoByItself(OnMoto, OnOneServer):
    pass


@pytest.mark.full_but(
    "test_copies_literal_names", "test_every_size_arrives_once", "test_one_bit_that_changed_later_is_found"
)
class TestMotoStreamed(OnMoto, Streamed):
    pass


@pytest.mark.full_but(
    "test_copies_literal_names",
    "test_every_size_arrives_once",
    "test_another_object_stays_and_is_told",
    "test_many_that_copy_the_same_at_once_agree",
)
class TestVersitygwByItself(OnVersitygw, OnOneServer):
    pass


@pytest.mark.full_but("test_copies_literal_names")
class TestVersitygwStreamed(OnVersitygw, Streamed):
    pass


class Between(OnMoto):
    """Files on one side, a bucket on the other."""

    def raw_put(self, key: str, data: bytes) -> None:
        (OnMoto if key.startswith("s3://") else OnDisk).raw_put(self, key, data)  # type: ignore[arg-type]

    def raw_get(self, key: str) -> bytes:
        return (OnMoto if key.startswith("s3://") else OnDisk).raw_get(self, key)  # type: ignore[arg-type]


@pytest.mark.full_but("test_every_size_arrives_once", "test_a_source_that_is_missing_fails")
class TestFilesToMoto(Between, CopyContract):
    @pytest.fixture
    def cold(self, served: Server) -> str:
        self.s3 = client(served)
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/lake"

    @pytest.fixture
    def copier(self, served: Server) -> Copy:
        return ObjectCopy({}, served.settings)

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


@pytest.mark.full_but("test_every_size_arrives_once", "test_a_source_that_is_missing_fails")
class TestMotoToFiles(Between, CopyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture
    def copier(self, served: Server) -> Copy:
        return ObjectCopy(served.settings)

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()
