"""The throw-away servers: they answer, each test has a place of its own, and they end with who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import requests
from sqlalchemy import NullPool, create_engine, text

from harness.servers.fixtures import Bucket, GetServer
from harness.servers.process import Server
from harness.servers.s3 import client
from harness.servers.session import NAMES

_PARENT = """
import sys, time
from pathlib import Path
from harness.servers import {name}
with {name}(Path(sys.argv[1])) as server:
    print(server.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("name", ["moto", "versitygw"])
def test_a_bucket_refuses_what_is_there_already(name: str, request: pytest.FixtureRequest) -> None:
    bucket: Bucket = request.getfixturevalue(f"{name}_bucket")
    s3, place = client(bucket.server), bucket.uri.removeprefix("s3://")
    s3.put_object(Bucket=place, Key="a/b", Body=b"first", IfNoneMatch="*")
    with pytest.raises(s3.exceptions.ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=place, Key="a/b", Body=b"second", IfNoneMatch="*")
    assert s3.get_object(Bucket=place, Key="a/b")["Body"].read() == b"first"


def test_a_database_is_empty(database: Server) -> None:
    engine = create_engine(database.url, poolclass=NullPool)
    with engine.connect() as connection:
        query = text("select count(*) from information_schema.tables where table_schema = 'public'")
        assert connection.execute(query).scalar() == 0


def test_the_rest_catalog_refuses_a_commit_against_another_table(rest_server: Server, namespace: str) -> None:
    tables = f"{rest_server.url}/v1/namespaces/{namespace}/tables"
    requests.post(f"{rest_server.url}/v1/namespaces", json={"namespace": [namespace]}, timeout=30).raise_for_status()
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
    made = requests.post(tables, json={"name": "t", "schema": schema}, timeout=30).json()
    right, wrong = made["metadata"]["table-uuid"], "00000000-0000-0000-0000-000000000000"
    outcomes = [_commit(f"{tables}/t", uuid) for uuid in (right, wrong)]
    assert outcomes == [200, 409]


def _commit(table: str, uuid: str) -> int:
    needs = [{"type": "assert-table-uuid", "uuid": uuid}]
    change = [{"action": "set-properties", "updates": {"a": "b"}}]
    return requests.post(table, json={"requirements": needs, "updates": change}, timeout=30).status_code


@pytest.mark.parametrize("name", NAMES)
def test_a_server_listens_on_loopback_only(name: str, server: GetServer) -> None:
    found = server(name)
    listening = [each for each in psutil.Process(found.pid).net_connections() if each.status == psutil.CONN_LISTEN]
    assert {each.laddr.ip for each in listening} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert listening


@pytest.mark.parametrize("name", ["rest", "postgres", "redis"])
@pytest.mark.sampled(1)
def test_a_server_dies_with_its_parent(name: str, tmp_path: Path, server: GetServer) -> None:
    server(name)
    command = [sys.executable, "-c", _PARENT.format(name=name), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert _ends(pid)


def _ends(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
            return True
        time.sleep(0.1)
    return False
