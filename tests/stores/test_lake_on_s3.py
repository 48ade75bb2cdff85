"""A PyIceberg user's own configuration, unchanged: two catalogs on two servers, each table reached by its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from firnline.app.places import places_of
from firnline.cli.main import run
from firnline.errors import AccessDenied, ObjectNotFound
from firnline.lake import Lake
from firnline.model.times import DAY_MS
from firnline.policy.parse import parse_policy
from firnline.ports.engines import ELSEWHERE
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock, dated
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .careless import Answer, as_it_is, careless

FUTURE = str(4_000_000_000_000)
OPTIONS = ("--older-than", FUTURE, "--retain-last", "2", "--blast-radius", "100%")


class Setup:
    """PyIceberg's own file, and tables that PyIceberg wrote."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.catalogs: dict[str, dict[str, str]] = {}

    def add(self, name: str, server: Server, bucket: str = "", table: str = "ns.t", **more: str) -> Any:
        """Returns a table with a few snapshots, in a new catalog on the server; in a bucket that is there, if named."""
        there = bucket or make_bucket(server, unique("lake"), versioned=server.name == "moto")
        warehouse = f"{there}/warehouse"
        where = {"type": "sql", "uri": f"sqlite:///{self.home}/{name}.db", "warehouse": warehouse}
        self.catalogs[name] = {**where, **server.settings}
        theirs = load_catalog(name, **self.catalogs[name])
        theirs.create_namespace("ns")
        made = theirs.create_table(table, schema=pa.schema([("x", pa.int64())]))
        for number in range(4):
            made.append(pa.table({"x": [number]}))
        self.catalogs[name] |= more
        (self.home / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": self.catalogs}))
        return made


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    return Setup(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run([*arguments, "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out or err)


def test_each_table_is_reached_with_its_own_catalogs_settings(
    setup: Setup, moto_server: Server, versitygw_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {"one": setup.add("one", moto_server), "two": setup.add("two", versitygw_server)}
    for name, table in tables.items():
        code, plan = said(capsys, "plan", f"{name}.ns.t", *OPTIONS)
        assert code == 0
        assert len(plan["expire"]) == 2
        assert [("frees nothing" in note) for note in plan["notes"]] == ([True] if name == "one" else [])
        code, ended = said(capsys, "expire", f"{name}.ns.t", *OPTIONS, "--grace", "0s", "--yes")
        assert (code, ended["state"]) == (0, "done"), ended
        assert ended["outcomes"]["deleted"]["files"] == plan["victims"]["files"] > 0
        code, checked = said(capsys, "check", f"{name}.ns.t")
        assert (code, checked["sound"]) == (0, True)
        assert sorted(table.refresh().scan().to_arrow()["x"].to_pylist()) == [0, 1, 2, 3]


def test_no_permission_to_delete_is_found_before_the_commit(
    setup: Setup, moto_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_deletes_of_data(method: str, path: str, body: bytes, answer: Answer) -> Answer:
        if method == "DELETE" and "/data/" in path:
            return 403, b"<Error><Code>AccessDenied</Code><Message>not you</Message></Error>"
        return answer

    with careless(moto_server.url) as server:
        server.change = no_deletes_of_data
        table = setup.add("lake", moto_server, **{"s3.endpoint": server.url})
        before = table.metadata_location
        files = {found.key for found in ObjectStores(moto_server.settings).list(table.location())}
        code, problem = said(capsys, "expire", "lake.ns.t", *OPTIONS, "--grace", "0s", "--yes")
        assert (code, problem["error"]["kind"]) == (1, "access-denied")
        assert "nothing was changed" in problem["error"]["message"]
        assert table.refresh().metadata_location == before
        assert {found.key for found in ObjectStores(moto_server.settings).list(table.location())} == files


@pytest.mark.full
def test_an_erasure_without_permission_to_delete_is_stopped_before_its_commit(
    setup: Setup, moto_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_deletes_of_data(method: str, path: str, body: bytes, answer: Answer) -> Answer:
        denied = method == "DELETE" and "/data/" in path
        return (403, b"<Error><Code>AccessDenied</Code><Message>not you</Message></Error>") if denied else answer

    with careless(moto_server.url) as server:
        table = setup.add("lake", moto_server, **{"s3.endpoint": server.url})
        path = next(iter(table.scan().plan_files())).file.file_path
        asked = ("erase", "lake.ns.t", path, "--case", "RIGHT-17", "--by", "A. Person", "--grace", "0s", "--yes")
        server.change, before = no_deletes_of_data, table.metadata_location
        code, problem = said(capsys, *asked)
        assert (code, problem["error"]["kind"]) == (1, "access-denied")
        assert "nothing was changed" in problem["error"]["message"]
        assert table.refresh().metadata_location == before
        server.change = as_it_is
        code, ended = said(capsys, *asked)
        assert (code, ended["done"]) == (0, True), ended
        assert len(table.refresh().scan().to_arrow()) == 3


def test_what_one_server_can_do_says_nothing_of_another_with_the_same_names(setup: Setup, moto_server: Server) -> None:
    """One process works on both, as a notebook or `firnline resume` does."""

    def no_deletes(method: str, path: str, body: bytes, answer: Answer) -> Answer:
        refused = method == "DELETE" and "/data/" in path
        return (403, b"<Error><Code>AccessDenied</Code></Error>") if refused else answer

    with careless(moto_server.url) as server:
        server.change = no_deletes
        table = setup.add("one", moto_server)
        database = f"sqlite:///{setup.home}/two.db"
        setup.catalogs["two"] = {**setup.catalogs["one"], "uri": database, "s3.endpoint": server.url}
        (setup.home / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": setup.catalogs}))
        theirs = load_catalog("two", **setup.catalogs["two"])
        theirs.create_namespace("ns")
        theirs.register_table("ns.t", table.metadata_location)
        lake = Lake(
            places_of(parse_policy("shared-with: ['*.ns.t']"), engine="local")
        )  # to firnline they are one table
        asked: Any = {"older_than": int(FUTURE), "retain_last": 2, "blast_radius": 1.0, "grace": "1d"}
        lake.expire("one.ns.t", **asked)
        with pytest.raises(AccessDenied, match="cannot delete"):
            lake.expire("two.ns.t", **asked)


@pytest.mark.parametrize("first", ["moto", "versitygw"])
@pytest.mark.full
def test_two_servers_may_have_buckets_and_objects_of_one_name(
    setup: Setup, moto_server: Server, versitygw_server: Server, first: str
) -> None:
    """Production and its rehearsal. What each table needs is read where it is; what is called alike counts for both."""
    servers = [moto_server, versitygw_server] if first == "moto" else [versitygw_server, moto_server]
    (here, there), name = servers, unique("lake")
    bucket, _ = (make_bucket(server, name) for server in servers)
    one, two, six = (
        setup.add(catalog, server, bucket, f"ns.{catalog}")
        for catalog, server in (("one", here), ("two", there), ("six", here))
    )
    lost = f"{one.location()}/data/lost.parquet"
    shared = one.inspect.files()["file_path"].to_pylist()[0]
    ObjectStores(here.settings).put(lost, b"a job that failed left it")
    ObjectStores(there.settings).put(shared, ObjectStores(here.settings).get(shared))
    for table in (two, six):  # both read a file by the name that the first one's has
        table.add_files([shared])
    one.delete("x >= 0")
    clock = Clock(30 * DAY_MS)
    lake = dated(Lake(places_of(parse_policy(""), engine="local")), clock)
    asked: Any = {"older_than": clock(), "retain_last": 1, "blast_radius": 1.0}
    plan = lake.plan("one.ns.one", **asked).plan
    assert (plan.refused, plan.spared[ELSEWHERE].files) == (None, 1)
    assert lake.expire("one.ns.one", **asked, grace="0s").state == "done"
    for table in ("one.ns.one", "six.ns.six", "two.ns.two"):
        found, run = lake.orphans(table, blast_radius=1.0, grace="0s", consent=lambda plan: True)
        assert run is None or run.state == "done"
        assert found.victims.all.files == (1 if table == "one.ns.one" else 0)
    for table, server in ((one, here), (two, there), (six, here)):
        assert len(table.refresh().scan().to_arrow()) == (0 if table is one else 5)
        assert ObjectStores(server.settings).head(shared).size > 0
    with pytest.raises(ObjectNotFound):
        ObjectStores(here.settings).head(lost)


def test_check_store_shows_what_was_tried(
    setup: Setup, versitygw_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    setup.add("lake", versitygw_server)
    code, found = said(capsys, "check", "store", setup.catalogs["lake"]["warehouse"])
    assert (code, found["fit"]) == (0, True)
    assert {each["verdict"] for each in found["findings"].values()} == {"yes", "no"}
    assert versitygw_server.settings["s3.secret-access-key"] not in json.dumps(found)
    code, problem = said(capsys, "check", "store", "s3://there-is-no-such-bucket/x")
    assert (code, problem["error"]["kind"]) == (1, "no-such-bucket")
    code, told = said(capsys, "check", "lake.ns.t", "lake.ns.u")  # the second is not there
    problems = {each["table"]: each["error"] and each["error"]["kind"] for each in told["tables"]}
    assert (code, problems) == (10, {"lake.ns.t": None, "lake.ns.u": "no-such-table"})
