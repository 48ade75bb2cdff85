"""Text of others on its way through a command: harmless on a terminal, exact in JSON, and never with a password."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from firnline.cli.main import run
from firnline.inflate import BELIEVED
from firnline.own_files import own_config
from firnline.settings import cache_folder

TABLE = "lake.ns.events"
EVIL = "\x1b]0;owned\x07\x1b[2Jevil\r\u202e\x9b31m"
SECRET = "hunter2"
Lake = Any


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(list(arguments))
    said = capsys.readouterr()
    return code, said.out + said.err


# ---------------------------------------------------------------- terminals


def _with_evil_names(document: dict[str, Any]) -> None:
    refs = document["refs"]
    refs[EVIL] = {**refs["release"], "type": "tag"}
    hold = {"who": EVIL, "why": EVIL, "snapshot": None, "until": None}
    document["properties"] = {f"firnline.hold.{EVIL}": json.dumps(hold), "firnline.keep": EVIL}


@pytest.mark.parametrize(
    "command",
    [
        ("plan", TABLE),
        ("plan", TABLE, "--list"),
        ("why", TABLE, EVIL),
        ("why", TABLE, "release"),
        ("tag", "list", TABLE),
        ("tag", "remove", TABLE, f"{EVIL}!"),
        ("hold", "list", TABLE),
        ("policy", "show", TABLE),
        ("plan", EVIL),
        ("plan", TABLE, f"--{EVIL}"),
        ("tables",),
    ],
    ids=lambda command: "-".join(command[:2]).replace(EVIL, "evil"),
)
def test_no_name_of_others_commands_the_terminal(
    lake: Lake, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    lake.publish(edit=_with_evil_names)
    lake.register(EVIL, lake.events.documents[-1])
    _, said = said_by(capsys, *command)
    assert not set("\x1b\x07\r\x9b\u202e") & set(said)


def test_json_says_them_exactly(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.publish(edit=_with_evil_names)
    _, said = said_by(capsys, "tag", "list", TABLE, "--json")
    assert EVIL in {each["name"] for each in json.loads(said)["tags"]}
    assert not set("\x1b\x07\r\x9b\u202e") & set(said)


# ---------------------------------------------------------------- metadata


@pytest.mark.sampled(4)
@pytest.mark.parametrize("value", [5, 2.5, True, "\ud800", "9" * 5_000])
@pytest.mark.parametrize(
    "name",
    [
        "write.metadata.previous-versions-max",
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.path",
        "write.metadata.compression-codec",
        "gc.enabled",
        "firnline.records",
        "any.thing",
    ],
)
def test_no_value_of_a_property_ends_in_a_traceback(
    lake: Lake, capsys: pytest.CaptureFixture[str], name: str, value: object
) -> None:
    lake.publish(edit=lambda document: document.update(properties={name: value}))
    for command in (("plan", TABLE), ("tag", "add", TABLE, "new"), ("expire", TABLE, "--yes")):
        code, said = said_by(capsys, *command)
        assert code in (0, 1, 2, 10, 14), said


@pytest.mark.parametrize("value", [5, True, "\ud800"])
def test_what_a_property_says_survives_a_commit(lake: Lake, capsys: pytest.CaptureFixture[str], value: object) -> None:
    lake.publish(edit=lambda document: document.update(properties={"any.thing": value}))
    assert said_by(capsys, "tag", "add", TABLE, "new")[0] == 0
    newest = max((lake.folder / "ns/events/metadata").glob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    document = json.loads(newest.read_bytes())
    assert document["properties"]["any.thing"] == value
    assert "new" in document["refs"]


def test_a_document_that_bursts_stops_a_search_by_its_name(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """A few megabytes of another table's metadata stood for gigabytes, and the search ended in a MemoryError."""
    bursting = lake.folder / "ns/events/metadata/00009-other.gz.metadata.json"
    deflate = zlib.compressobj(9, wbits=31)
    bursting.write_bytes(b"".join(deflate.compress(b" " * BELIEVED) for _ in range(2)) + deflate.flush())
    code, said = said_by(capsys, "orphans", TABLE, "--dry-run")
    assert code == 14
    assert f"{bursting.name}: its" in said
    assert f"inflate to more than {BELIEVED:,}" in said


# ---------------------------------------------------------------- passwords


ENDPOINTS = [
    "nonsense",
    "http://",
    "http://[",
    "http://a b",
    f"http://me:{SECRET}@[::1",
    f"http://me:{SECRET}@127.0.0.1:1",
    f"http://me:{SECRET}@127.0.0.1:port",
    f"http://{SECRET}@127.0.0.1:1",
    f"ftp://me:{SECRET}@127.0.0.1",
    f"me:{SECRET}@127.0.0.1",
    "http://\ud800",
]


def _environment(**more: str) -> Mapping[str, str]:
    keys = {"S3__ACCESS_KEY_ID": "key", "S3__SECRET_ACCESS_KEY": f"s-{SECRET}", "S3__REGION": "eu-x-1", **more}
    return {f"PYICEBERG_CATALOG__LAKE__{name}": value for name, value in keys.items()}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("command", [("plan", "s3://b/t"), ("check", "store", "s3://b/t"), ("doctor",)])
def test_an_endpoint_without_sense_is_told_without_its_password(
    lake: Lake,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    endpoint: str,
    command: tuple[str, ...],
) -> None:
    for name, value in _environment().items():
        monkeypatch.setenv(name, value)
    settings = (lake.folder / ".pyiceberg.yaml").read_text() + f"    s3.endpoint: {json.dumps(endpoint)}\n"
    (lake.folder / ".pyiceberg.yaml").write_text(settings)
    lake.register("remote", "s3://b/t/metadata/00000-x.metadata.json")
    code, said = said_by(capsys, *command)
    assert code in (0, 1, 2, 10, 14), said
    assert SECRET not in said


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "uri",
    [
        f"sqlite+pysqlcipher://:{SECRET}@//nowhere/lake.db?cipher=aes-256-cfb",
        f"sqlite:////nowhere/lake.db?key={SECRET}",
        f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/lake",
        f"postgresql+psycopg://127.0.0.1:1/lake?user=me&password={SECRET}",
        f"mysql://me:{SECRET}@127.0.0.1:1/lake",
        f"nonsense://me:{SECRET}@127.0.0.1:1/lake",
        f"http://me:{SECRET}@127.0.0.1:1/catalog?token={SECRET}",
        f"http://me:{SECRET}@[::1/catalog",
        f"http://me:{SECRET}@127.0.0.1:port/catalog",
        "http://",
    ],
)
@pytest.mark.parametrize("command", [("tables",), ("plan", TABLE), ("doctor",)])
def test_no_address_of_a_catalog_tells_its_password(
    lake: Lake, capsys: pytest.CaptureFixture[str], uri: str, command: tuple[str, ...]
) -> None:
    kind = "rest" if uri.startswith("http") else "sql"
    (lake.folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    type: {kind}\n    uri: '{uri}'\n")
    code, said = said_by(capsys, *command)
    assert code in (0, 1, 2, 10, 14), said
    assert SECRET not in said


# ---------------------------------------------------------------- folders


@pytest.mark.parametrize("named", ["", "config", "./config"])
@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "XDG_CACHE_HOME"])
def test_an_empty_or_relative_base_folder_writes_nothing_here(
    lake: Lake,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    named: str,
) -> None:
    """As the specification of these variables demands: such a path counts as none."""
    home = tmp_path / "home"
    for name, value in {"HOME": str(home), "FIRNLINE_CACHE": "disk", variable: named}.items():
        monkeypatch.setenv(name, value)
    if variable == "XDG_CONFIG_HOME":
        assert own_config() == home / ".config/firnline"
    else:
        assert cache_folder() == home / ".cache/firnline/units"
    here = {path for path in lake.folder.rglob("*") if "_firnline" not in str(path)}
    for command in (("doctor",), ("plan", TABLE)):
        said_by(capsys, *command)
    assert {path for path in lake.folder.rglob("*") if "_firnline" not in str(path)} == here
