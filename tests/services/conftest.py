"""Worlds on real servers: the core's own harness, on S3 with a shared catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from firnline.catalogs.sql import SqlCatalog
from harness.grounds import Ground, rest_ground, sql_ground
from harness.servers.fixtures import GetServer, unique
from harness.servers.jars import for_spark
from harness.servers.postgres import make_database
from harness.servers.s3 import client, make_bucket
from harness.world import World

MakeWorld = Callable[..., World]
SHELL = Path(__file__).with_name("spark_shell.py")
Sql = Callable[[str], list[list[Any]]]
GROUNDS = ("s3+postgresql", "s3+rest")


@pytest.fixture
def make_ground(server: GetServer) -> Iterator[Callable[[str], Ground]]:
    """Makes new ground of a kind: a bucket of its own on moto, and a database or namespace of its own."""
    made: list[Ground] = []

    def make(kind: str) -> Ground:
        made.append(new(kind))
        return made[-1]

    def new(kind: str) -> Ground:
        s3 = server("moto")
        bucket, objects = make_bucket(s3, unique("world")), client(s3)
        if kind == "s3+rest":
            namespace = unique("ns").replace("-", "_")
            return rest_ground(bucket, s3.settings, objects, server("rest").settings, namespace)
        return sql_ground(bucket, s3.settings, objects, make_database(server("postgres"), unique("world")).url)

    yield make
    for each in made:
        if isinstance(each.catalog, SqlCatalog):
            each.catalog.close()


@pytest.fixture(params=GROUNDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_world(make_ground: Callable[[str], Ground], kind: str, tmp_path: Path) -> MakeWorld:
    """Makes new worlds on this kind of ground; other arguments as of World.make."""
    numbers = count(1)

    def make(**options: Any) -> World:
        return World.make(tmp_path / str(next(numbers)), ground=make_ground(kind), **options)

    return make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()


@pytest.fixture
def start_spark(tmp_path: Path) -> Iterator[Callable[[Sequence[str], Mapping[str, str]], Sql]]:
    """Starts Spark with these jars and settings; returns what runs one statement there and returns its rows."""
    with ExitStack() as shells:
        yield lambda jars, settings: shells.enter_context(_spark(tmp_path, for_spark(jars), settings))


@contextmanager
def _spark(folder: Path, jars: str, settings: Mapping[str, str]) -> Iterator[Sql]:
    command = [sys.executable, str(SHELL), jars, json.dumps(settings)]
    with (
        (folder / "spark.log").open("w+") as said,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, cwd=folder
        ) as shell,
    ):
        assert shell.stdin is not None
        assert shell.stdout is not None
        asked, answers = shell.stdin, shell.stdout

        def ask(statement: str) -> list[list[Any]]:
            print(json.dumps(statement), file=asked, flush=True)
            for line in answers:
                if line.startswith("answer: "):
                    return list(json.loads(line.removeprefix("answer: ")))
            said.seek(0)
            raise AssertionError(f"{statement}\n{said.read()[-3000:]}")

        yield ask
        asked.close()
