from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.servers.redis import redis


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with redis(folder, memory="256mb") as server:
        yield server.settings["url"]
