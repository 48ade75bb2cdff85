"""S3 servers on loopback, one of each per session of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firnline.testing.servers.moto import moto
from firnline.testing.servers.process import Missing, Server
from firnline.testing.servers.versitygw import versitygw


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(scope="session")
def versitygw_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        with versitygw(tmp_path_factory.mktemp("versitygw")) as server:
            yield server
    except Missing as missing:
        pytest.skip(str(missing))
