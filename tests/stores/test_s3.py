"""S3 keeps the store's contract, on two servers that have nothing in common."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import uuid4

import botocore.exceptions
import pytest

from firnline.ports.delete import Fate
from firnline.ports.stores import ReadWrite
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.wrappers.retry import Retrying
from firnline.testing.deletes import DeleteContract
from firnline.testing.stores import AWKWARD_NAMES, SharedStoreContract, SideDoor
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket

# A server on a file system cannot have one object below another, nor every name.
_ON_FILES = tuple(name for name in AWKWARD_NAMES if name != "back\\slash")


class OnS3(SideDoor):
    s3: Any
    server: Server

    @pytest.fixture
    def served(self) -> Server:
        raise NotImplementedError

    @pytest.fixture
    def root(self, served: Server) -> str:
        self.server, self.s3 = served, client(served)
        return make_bucket(served, f"b{uuid4().hex[:20]}") + "/lake"

    def raw_put(self, key: str, data: bytes) -> None:
        bucket, _, name = key.removeprefix("s3://").partition("/")
        self.s3.put_object(Bucket=bucket, Key=name, Body=data)

    def raw_get(self, key: str) -> bytes:
        bucket, _, name = key.removeprefix("s3://").partition("/")
        try:
            return bytes(self.s3.get_object(Bucket=bucket, Key=name)["Body"].read())
        except botocore.exceptions.ClientError as error:
            raise KeyError(key) from error

    def etag(self, key: str) -> str:
        bucket, _, name = key.removeprefix("s3://").partition("/")
        return str(self.s3.head_object(Bucket=bucket, Key=name)["ETag"])


class OnMoto(OnS3):
    @pytest.fixture
    def served(self, moto_server: Server) -> Server:
        return moto_server


class OnVersitygw(OnS3):
    awkward: ClassVar[tuple[str, ...]] = _ON_FILES

    @pytest.fixture
    def served(self, versitygw_server: Server) -> Server:
        return versitygw_server


@pytest.mark.full("test_names_are_literal", "test_a_reader_in_another_process_sees_all_or_nothing")
class TestMoto(OnMoto, SharedStoreContract):
    loses_races = "moto lets two of several racing conditional writes win now and then; versitygw runs this"

    @pytest.fixture
    def store(self, served: Server) -> ReadWrite:
        return Retrying(ObjectStores(served.settings))  # moto answers 500 to a read beside a write


class TestVersitygw(OnVersitygw, SharedStoreContract):
    @pytest.fixture
    def store(self, served: Server) -> ReadWrite:
        return Retrying(ObjectStores(served.settings))


class S3Deletes(DeleteContract):
    folder_fates = frozenset({Fate.FAILED, Fate.DELETED})
    gone = Fate.DELETED

    @pytest.fixture(params=[True, False], ids=["conditional", "compared"])
    def deleter(self, served: Server, request: pytest.FixtureRequest) -> ObjectDelete:
        return ObjectDelete(served.settings, conditional=request.param)


@pytest.mark.full("test_deletes_the_literal_names_and_nothing_else", "test_many_keys_at_once")
class TestMotoDelete(OnMoto, S3Deletes):
    awkward = (*AWKWARD_NAMES, "tab\tin", "bell\x07in", "return\rin", "line\u2028in")


class TestVersitygwDelete(OnVersitygw, S3Deletes):
    pass
