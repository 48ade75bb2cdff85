"""pytest fixtures: servers of the session, and a bucket, database or namespace of each test's own on them.

A server comes from the session's environment (`python -m harness.servers run -- pytest`), or is started here
by the first test that asks. What this machine cannot run skips its tests, with a reason that the session's end counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from harness.servers.postgres import make_database
from harness.servers.process import Missing, Server
from harness.servers.s3 import make_bucket
from harness.servers.session import servers

NOT_HERE = "not run here: "
GetServer = Callable[[str], Server]


@dataclass(frozen=True)
class Bucket:
    """An empty bucket of one test on an S3 server."""

    server: Server
    uri: str


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GetServer]:
    """Returns servers by name (moto, versitygw, postgres, redis, rest); skips the test where one is missing."""
    with servers(tmp_path_factory.mktemp("servers")) as running:

        def get(name: str) -> Server:
            try:
                return running.get(name)
            except Missing as missing:
                pytest.skip(f"{NOT_HERE}{missing}")

        yield get


def unique(prefix: str) -> str:
    """Returns a name that no other test has, fit for buckets, databases and namespaces."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def moto_server(server: GetServer) -> Server:
    return server("moto")


@pytest.fixture(scope="session")
def versitygw_server(server: GetServer) -> Server:
    return server("versitygw")


@pytest.fixture(scope="session")
def postgres_server(server: GetServer) -> Server:
    return server("postgres")


@pytest.fixture(scope="session")
def rest_server(server: GetServer) -> Server:
    """The REST catalog; its warehouse is on moto, and a table may name a location on local files instead."""
    return server("rest")


@pytest.fixture
def moto_bucket(moto_server: Server) -> Bucket:
    return Bucket(moto_server, make_bucket(moto_server, unique("test")))


@pytest.fixture
def versitygw_bucket(versitygw_server: Server) -> Bucket:
    return Bucket(versitygw_server, make_bucket(versitygw_server, unique("test")))


@pytest.fixture
def database(postgres_server: Server) -> Server:
    """An empty PostgreSQL database of the test's own."""
    return make_database(postgres_server, unique("test"))


@pytest.fixture
def namespace() -> str:
    """A name for a namespace that no other test uses; the test creates it."""
    return unique("ns").replace("-", "_")
