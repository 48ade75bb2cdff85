"""Taking metadata out of a table's folder: only the object that was meant goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.stores.objects import ObjectStores
from firnline.stores.removers import ObjectRetire
from harness.servers.fixtures import Bucket


class Overtaken(ObjectStores):
    """Somebody rolls back and commits again just after an object was read: another one has its name."""

    def get(self, key: str) -> bytes:
        data = super().get(key)
        self.put(key, b"another")
        return data


@pytest.fixture(params=["local", "moto"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, str], str]:
    if request.param == "local":
        return {}, f"file://{tmp_path}/snapshot-7"
    bucket: Bucket = request.getfixturevalue("moto_bucket")
    return dict(bucket.server.settings), f"{bucket.uri}/t/snapshot/snapshot-7"


def test_what_was_written_under_the_same_name_meanwhile_stays(place: tuple[dict[str, str], str]) -> None:
    settings, key = place
    store = Overtaken(settings)
    store.put(key, b"meant")
    ObjectRetire(store, settings).retire(key, b"meant")
    assert ObjectStores(settings).get(key) == b"another"


def test_what_is_meant_goes_and_what_differs_or_is_gone_is_left_alone(place: tuple[dict[str, str], str]) -> None:
    settings, key = place
    store = ObjectStores(settings)
    retirer = ObjectRetire(store, settings)
    retirer.retire(key, b"meant")
    store.put(key, b"meant")
    retirer.retire(key, b"other")
    assert store.get(key) == b"meant"
    retirer.retire(key, b"meant")
    assert not list(store.list(key.rpartition("/")[0]))
