"""With exactly the printed permissions a command works; with one less it fails, says so, and has changed nothing."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer.main
from pyiceberg.catalog.sql import SqlCatalog

from firnline.cli.main import app, run
from firnline.ops.looking.command_needs import COMMANDS, Need, PlaceKind, Verb
from firnline.ops.looking.permissions import ACTIONS, aws_policy, grants, template
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import SmallTable
from harness.servers.moto import enforce, moto, user
from harness.servers.process import Server
from harness.servers.s3 import client, environment, make_bucket

ROOT = Path(__file__).parents[2]
BUCKET = "lake"
NAMES = count()
ANYTHING_ELSE = {"Effect": "Allow", "Action": ["sqs:ListQueues"], "Resource": ["*"]}


# ---------------------------------------------------------------- the table of verbs


def every_command() -> list[str]:
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "scripts" / "cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = [name.removeprefix("firnline ") for name, _ in module.commands(typer.main.get_command(app))]
    return [name for name in names if name != "help"]  # that one asks nobody for anything


def test_every_command_is_in_the_table_and_nothing_else() -> None:
    assert sorted(COMMANDS) == sorted(every_command())


@pytest.mark.parametrize("store", ACTIONS)
def test_every_store_has_a_word_for_every_verb(store: str) -> None:
    assert set(ACTIONS[store]) == set(Verb)


def test_a_folder_inside_another_is_not_named_twice() -> None:
    needs = [Need(Verb.GET, PlaceKind.METADATA), Need(Verb.GET, PlaceKind.FILES), Need(Verb.PUT, PlaceKind.RECORDS)]
    given = grants(needs, template("s3"), "s3")
    assert [(each.verb, each.folders) for each in given] == [
        (Verb.GET, ("s3://bucket/table",)),
        (Verb.PUT, ("s3://bucket/table/_firnline",)),
    ]
    assert aws_policy(given)["Statement"][1] == {
        "Sid": "FirnlinePut",
        "Effect": "Allow",
        "Action": ["s3:PutObject"],
        "Resource": ["arn:aws:s3:::bucket/table/_firnline/*"],
    }


def test_only_commands_that_delete_may_delete_files() -> None:
    deleting = {name for name, uses in COMMANDS.items() if Need(Verb.DELETE, PlaceKind.FILES) in uses.needs}
    assert deleting == {
        "expire",
        "commit",
        "purge",
        "resume",
        "branch drop",
        "orphans",
        "dropped",
        "erase",
        "worker",
        "doctor",
        "serve",
    }


def test_a_local_table_and_unknown_words_are_usage_errors(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["plan", "--table", "lake.ns.events"], ["fly"], ["plan", "--store", "floppy"]):
        assert run(["iam", *arguments, "--json"]) == 2
        assert json.loads(capsys.readouterr().err)["error"]["hint"]


def test_text_shows_the_policy_and_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iam", "hold", "add"]) == 0
    said = capsys.readouterr().out
    assert '"s3:PutObject"' in said
    assert "UPDATE on iceberg_tables" in said
    assert run(["iam", "plan", "--store", "gs"]) == 0
    assert "storage.objects.get" in capsys.readouterr().out


# ---------------------------------------------------------------- a server that enforces them


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own: while it enforces, nobody without permission gets in."""
    with moto(tmp_path_factory.mktemp("moto")) as server:
        make_bucket(server, BUCKET)
        yield server


class Puts:
    """Puts objects as somebody who may do everything."""

    def __init__(self, server: Server) -> None:
        self._client = client(server)

    def put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=BUCKET, Key=key.removeprefix(f"s3://{BUCKET}/"), Body=data)


@dataclass
class Bench:
    """A table of the test's own on the server, and whose permissions commands are run with."""

    server: Server
    folder: Path
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def fresh(self) -> str:
        """Makes a table of six days; everything but the newest would expire. Returns its name."""
        name = f"t{next(NAMES)}"
        table = SmallTable(Puts(self.server), f"s3://{BUCKET}/ns/{name}", AvroLayout(2))
        for _ in range(4):
            table.append()
        table.overwrite(table.live())
        table.append()
        row = ("lake", "ns", name, self.as_catalogs_name_it(table.publish()), "TABLE")
        columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        with sqlite3.connect(self.folder / "catalog.db") as database:
            database.execute(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", row)
        database.close()
        return f"lake.ns.{name}"

    def as_catalogs_name_it(self, metadata: str) -> str:
        """Gives a metadata file such a name as catalogs do. One that counts versions may be Paimon's, and then firnline
        looks for more.
        """
        old = metadata.removeprefix(f"s3://{BUCKET}/")
        new = f"{old.rpartition('/')[0]}/00001-{uuid4()}.metadata.json"
        client(self.server).copy_object(Bucket=BUCKET, CopySource={"Bucket": BUCKET, "Key": old}, Key=new)
        client(self.server).delete_object(Bucket=BUCKET, Key=old)
        return f"s3://{BUCKET}/{new}"

    def location(self, table: str) -> str:
        with sqlite3.connect(self.folder / "catalog.db") as database:
            (found,) = database.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", (table.rpartition(".")[2],)
            ).fetchone()
        database.close()
        return str(found)

    def keys(self, table: str) -> set[str]:
        pages = client(self.server).get_paginator("list_objects_v2")
        prefix = f"ns/{table.rpartition('.')[2]}/"
        return {each["Key"] for page in pages.paginate(Bucket=BUCKET, Prefix=prefix) for each in page["Contents"]}

    def run(self, arguments: list[str], who: Server | None = None) -> tuple[int, str, str]:
        """Returns exit code, output and errors of a command, run by somebody; without a name, by the owner."""
        for name, value in environment(who or self.server).items():
            self.patch.setenv(name, value)
        enforce(self.server, on=who is not None)
        try:
            code = run([*arguments, "--json"])
        finally:
            enforce(self.server, on=False)
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def policy(self, command: str, table: str) -> dict[str, Any]:
        code, out, _ = self.run(["iam", *command.split(), "--table", table])
        assert code == 0
        return json.loads(out)["policy"]  # type: ignore[no-any-return]

    def allowed(self, policy: dict[str, Any]) -> Server:
        """Returns the server as somebody with these permissions reaches it.

        moto asks for the permission of a bulk delete on the bucket, where AWS asks on each object.
        """
        statements = [ANYTHING_ELSE]
        for each in policy["Statement"]:
            bulk = [f"arn:aws:s3:::{BUCKET}"] if each["Action"] == ["s3:DeleteObject"] else []
            statements.append({**each, "Resource": [*each["Resource"], *bulk]})
        return user(self.server, f"user-{next(NAMES)}", {**policy, "Statement": statements})


@pytest.fixture
def bench(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    type: sql\n    uri: {uri}\n")
    SqlCatalog("lake", uri=uri, warehouse=f"s3://{BUCKET}").close()
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    return Bench(s3, tmp_path, monkeypatch, capsys)


def prepared_run(bench: Bench, table: str, *more: str) -> str:
    code, out, err = bench.run(["expire", table, "--retain-last", "1", "--older-than", "2030-01-01T00:00Z", *more])
    assert code == 0, err
    return str(json.loads(out)["run"])


EXPIRE = ["--retain-last", "1", "--older-than", "2030-01-01T00:00Z", "--yes"]
PREPARED: dict[str, Callable[[Bench, str], list[str]]] = {
    "plan": lambda bench, table: ["plan", table, *EXPIRE[:-1]],
    "why": lambda bench, table: ["why", table, "main"],
    "check": lambda bench, table: ["check", table],
    "runs": lambda bench, table: ["runs", table],
    "policy show": lambda bench, table: ["policy", "show", table],
    "tag add": lambda bench, table: ["tag", "add", table, "release", "main"],
    "expire": lambda bench, table: ["expire", table, *EXPIRE, "--grace", "0s"],
    "purge": lambda bench, table: ["purge", prepared_run(bench, table, "--yes", "--grace", "1s")],
    "undo": lambda bench, table: ["undo", prepared_run(bench, table, "--yes", "--grace", "1d")],
}
"""How each command is called, after what must have happened before."""


def less(policy: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the policy without each of its actions."""
    for statement in policy["Statement"]:
        for action in statement["Action"]:
            rest = [each for each in policy["Statement"] if each is not statement]
            yield action, {**policy, "Statement": rest}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", PREPARED)
def test_exactly_the_printed_permissions_are_enough(bench: Bench, command: str) -> None:
    table = bench.fresh()
    arguments = PREPARED[command](bench, table)
    code, _, err = bench.run(arguments, bench.allowed(bench.policy(command, table)))
    assert code == 0, err


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", PREPARED)
def test_one_permission_less_is_found_before_anything_changes(bench: Bench, command: str) -> None:
    table = bench.fresh()
    arguments = PREPARED[command](bench, table)
    before, keys = bench.location(table), bench.keys(table)
    for action, policy in less(bench.policy(command, table)):
        code, _, err = bench.run(arguments, bench.allowed(policy))
        assert code != 0, f"{command} works without {action}"
        said = json.loads(err)["error"]
        assert said["message"]
        assert bench.location(table) == before
        assert {each for each in keys - bench.keys(table) if "/_firnline/" not in each} == set(), f"without {action}"


@pytest.mark.parametrize("command", ["runs", "resume", "purge"])
@pytest.mark.full
def test_the_printed_permissions_are_enough_to_go_by_the_list_of_unfinished_runs(bench: Bench, command: str) -> None:
    (bench.folder / "firnline.yaml").write_text(f"records: s3://{BUCKET}/records-for-{command}\n")
    table = bench.fresh()
    expire = ["expire", table, *EXPIRE, "--grace", "1d"]
    code, _, err = bench.run(expire, bench.allowed(bench.policy("expire", table)))
    assert code == 0, err
    code, out, err = bench.run([command], bench.allowed(bench.policy(command, table)))
    assert code == 0, err
    assert len(json.loads(out)["runs"]) == 1


def test_a_history_beside_records_that_lie_elsewhere_is_named(bench: Bench) -> None:
    (bench.folder / "firnline.yaml").write_text(f"records: s3://{BUCKET}/records\nhistory: forever\n")
    table = bench.fresh()
    policy = bench.policy("expire", table)
    code, _, err = bench.run(["expire", table, *EXPIRE, "--grace", "0s"], bench.allowed(policy))
    assert code == 0, err
    assert any("/_firnline/history/" in key for key in bench.keys(table))
    (bench.folder / "firnline.yaml").write_text(f"records: s3://{BUCKET}/records\n")
    assert "_firnline/history" in str(bench.policy("history", table))
    assert "_firnline" not in str(bench.policy("history", bench.fresh()))
