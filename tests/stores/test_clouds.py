"""Google's and Microsoft's stores keep the contract: run where credentials and an empty bucket are at hand.

FIRNLINE_TEST_GCS=gs://bucket/prefix          with GOOGLE_APPLICATION_CREDENTIALS
FIRNLINE_TEST_AZURE=abfss://container@account.dfs.core.windows.net/prefix   with AZURE_STORAGE_ACCOUNT_KEY or alike
"""

from __future__ import annotations

import os
from typing import ClassVar
from uuid import uuid4

import obstore
import pytest
from obstore.store import from_url

from firnline.ports.delete import Fate
from firnline.ports.stores import ReadWrite
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.wrappers.retry import Retrying
from firnline.testing.deletes import DeleteContract
from firnline.testing.stores import SharedStoreContract, SideDoor
from harness.servers.fixtures import NOT_HERE


class InTheCloud(SideDoor):
    variable: ClassVar[str]

    @pytest.fixture
    def root(self) -> str:
        place = os.environ.get(self.variable)
        if not place:
            pytest.skip(f"{NOT_HERE}{self.variable} names no bucket")
        return f"{place.rstrip('/')}/{uuid4().hex}"

    def raw_put(self, key: str, data: bytes) -> None:
        bucket, name = self._apart(key)
        obstore.put(from_url(bucket), name, data)

    def raw_get(self, key: str) -> bytes:
        bucket, name = self._apart(key)
        try:
            return bytes(obstore.get(from_url(bucket), name).bytes())
        except FileNotFoundError as error:
            raise KeyError(key) from error

    def etag(self, key: str) -> str:
        return ObjectStores().head(key).etag or ""

    def _apart(self, key: str) -> tuple[str, str]:
        scheme, _, rest = key.partition("://")
        authority, _, name = rest.partition("/")
        return f"{scheme}://{authority}", name


class OnGoogle(InTheCloud):
    variable = "FIRNLINE_TEST_GCS"


class OnAzure(InTheCloud):
    variable = "FIRNLINE_TEST_AZURE"


class CloudStore(SharedStoreContract):
    @pytest.fixture
    def store(self) -> ReadWrite:
        return Retrying(ObjectStores())


class CloudDelete(DeleteContract):
    folder_fates = frozenset({Fate.FAILED, Fate.MISSING})

    @pytest.fixture
    def deleter(self) -> ObjectDelete:
        return ObjectDelete()


class TestGoogle(OnGoogle, CloudStore):
    pass


class TestGoogleDelete(OnGoogle, CloudDelete):
    pass


class TestAzure(OnAzure, CloudStore):
    pass


class TestAzureDelete(OnAzure, CloudDelete):
    pass
