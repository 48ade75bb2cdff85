"""Whatever is wrong, the command says which kind of error it is, what is meant and what helps; nothing changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from firnline.cli.main import run
from firnline.testing.damage import cut_in_half, remove, replace_with_text
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable

PLAN = ("plan", "lake.ns.events")
Lake = Any


@dataclass(frozen=True)
class Case:
    """A command that must fail. `says` is in the message, `helps` in the hint; `{…}` is filled from `prepare`."""

    kind: str
    code: int
    says: tuple[str, ...]
    helps: str
    arguments: tuple[str, ...] = PLAN
    prepare: Callable[[Lake], str | None] = lambda lake: None


def _edited(change: dict[str, Any]) -> Callable[[Lake], str]:
    """Publishes the table with some fields of its document changed."""

    def prepare(lake: Lake) -> str:
        return str(lake.publish(edit=lambda document: document.update(change)))

    return prepare


def _with_property(name: str, value: str) -> Callable[[Lake], str]:
    return _edited({"properties": {name: value}})


def _policy(text: str) -> Callable[[Lake], None]:
    return lambda lake: lake.policy(text)


def _metadata(spoil: Callable[[str], None]) -> Callable[[Lake], str]:
    """Spoils the document that the catalog points at."""

    def prepare(lake: Lake) -> str:
        spoil(str(lake.path(lake.events.documents[-1])))
        return str(lake.events.documents[-1])

    return prepare


def _unit(suffix: str, spoil: Callable[[str], None]) -> Callable[[Lake], str]:
    """Spoils the newest manifest list or manifest."""

    def prepare(lake: Lake) -> str:
        unit = max(path for path in lake.events.made if path.endswith(suffix))
        spoil(str(lake.path(unit)))
        return unit

    return prepare


def _two_versions(lake: Lake) -> str:
    table = SmallTable(QuickFiles(), f"file://{lake.folder}/twice", AvroLayout(2))
    table.append()
    table.publish()
    table.documents.clear()
    table.publish(compressed=True)
    return table.location


def _points_nowhere(lake: Lake) -> None:
    lake.register("events", "")


def _points_at_hdfs(lake: Lake) -> None:
    lake.register("events", "hdfs://nn/t/metadata/00001-x.metadata.json")


def _no_database(lake: Lake) -> str:
    (lake.folder / "catalog.db").unlink()
    return str(lake.folder / "catalog.db")


def _no_catalog_there(lake: Lake) -> None:
    (lake.folder / "catalog.db").write_bytes(b"not a database " * 100)


def _no_catalogs(lake: Lake) -> None:
    (lake.folder / ".pyiceberg.yaml").unlink()


def _latin(lake: Lake) -> None:
    (lake.folder / "firnline.yaml").write_bytes("keep: {last: 3}\n# größer\n".encode("latin-1"))


def _pyiceberg(text: str) -> Callable[[Lake], None]:
    def prepare(lake: Lake) -> None:
        (lake.folder / ".pyiceberg.yaml").write_text(text)

    return prepare


NO_TABLE = ("no-such-table", 10)
USAGE, POLICY, TIMESTAMP = ("usage", 2), ("policy", 2), ("bad-timestamp", 2)
UNREADABLE, UNSUPPORTED = ("unreadable", 14), ("unsupported", 14)
KEEP_LAST = "keep:\n  last: 3\n"

CASES = {
    "unknown table": Case(*NO_TABLE, ("lake.ns.event",), "lake.ns.events", ("plan", "lake.ns.event")),
    "unknown namespace": Case(*NO_TABLE, ("lake.sn.events",), "lake.ns.events", ("plan", "lake.sn.events")),
    "unknown catalog": Case(*NO_TABLE, ("shore.ns.events",), "lake.ns.events", ("plan", "shore.ns.events")),
    "a table's name alone": Case(*NO_TABLE, ("events",), "did you mean lake.ns.events?", ("plan", "events")),
    "a name that no table has": Case(*NO_TABLE, ("zzz",), "CATALOG.NAMESPACE.NAME", ("plan", "zzz")),
    "unknown catalog to list": Case(*USAGE, ("'shore'",), "lake", ("tables", "shore")),
    "no table at a location": Case(*NO_TABLE, ("nothing/here",), "metadata", ("plan", "/nothing/here")),
    "missing metadata": Case(*UNREADABLE, ("missing", "{}"), "nothing was changed", PLAN, _metadata(remove)),
    "damaged metadata": Case(*UNREADABLE, ("damaged", "{}"), "nothing was changed", PLAN, _metadata(cut_in_half)),
    "metadata of something else": Case(
        *UNREADABLE, ("damaged", "{}"), "nothing was changed", PLAN, _metadata(replace_with_text)
    ),
    "missing list": Case(*UNREADABLE, ("manifest-list", "{}"), "nothing was changed", PLAN, _unit("list.avro", remove)),
    "damaged list": Case(
        *UNREADABLE, ("manifest-list", "{}"), "nothing was changed", PLAN, _unit("list.avro", cut_in_half)
    ),
    "missing manifest": Case(
        *UNREADABLE, ("manifest is missing", "{}"), "nothing was changed", PLAN, _unit("manifest.avro", remove)
    ),
    "damaged manifest": Case(
        *UNREADABLE, ("manifest is damaged", "{}"), "nothing was changed", PLAN, _unit("manifest.avro", cut_in_half)
    ),
    "missing manifest, asked why": Case(
        *UNREADABLE, ("{}",), "nothing was changed", ("why", "lake.ns.events", "/x/y"), _unit("manifest.avro", remove)
    ),
    "unknown format version": Case(*UNSUPPORTED, ("version 4", "{}"), "1, 2, 3", PLAN, _edited({"format-version": 4})),
    "encrypted table": Case(
        *UNSUPPORTED, ("encrypted", "{}"), "keys", PLAN, _edited({"encryption-keys": [{"key-id": "k"}]})
    ),
    "removal forbidden": Case(
        "collection-forbidden",
        14,
        ("lake.ns.events", "gc.enabled"),
        "gc.enabled",
        PLAN,
        _with_property("gc.enabled", "false"),
    ),
    "unreadable hold": Case(
        "collection-forbidden",
        14,
        ("lake.ns.events", "firnline.hold.audit", "cannot be read"),
        "firnline hold release lake.ns.events audit",
        PLAN,
        _with_property("firnline.hold.audit", "?"),
    ),
    "two documents of one version": Case(
        *UNREADABLE, ("v1.metadata.json", "v1.gz"), "metadata file", ("plan", "{}"), _two_versions
    ),
    "a catalog that names no metadata": Case(*UNREADABLE, ("lake.ns.events",), "", PLAN, _points_nowhere),
    "a store that nobody knows": Case("store", 1, ("hdfs",), "known are", PLAN, _points_at_hdfs),
    "no database": Case(*USAGE, ("{}",), "uri", PLAN, _no_database),
    "not a database": Case("store", 1, ("catalog lake",), "", PLAN, _no_catalog_there),
    "a catalog of an unknown type": Case(
        *USAGE, ("catalog lake", "nonsense"), "type", PLAN, _pyiceberg("catalog:\n  lake:\n    type: nonsense\n")
    ),
    "a catalog that lacks its address": Case(
        *USAGE, ("catalog lake", "URI"), "settings", PLAN, _pyiceberg("catalog:\n  lake:\n    type: hive\n")
    ),
    "no catalogs": Case(*NO_TABLE, ("lake.ns.events",), "none is configured", PLAN, _no_catalogs),
    "unreadable catalogs": Case(*USAGE, ("PyIceberg",), "", PLAN, _pyiceberg("catalog: [")),
    "misspelt rule": Case(
        *POLICY, ("firnline.yaml:2", "'lastt'", "did you mean 'last'"), "within", PLAN, _policy("keep:\n  lastt: 3\n")
    ),
    "misspelt setting": Case(
        *POLICY, ("firnline.yaml:1", "'graces'", "did you mean 'grace'"), "keep", PLAN, _policy("graces: 1d\n")
    ),
    "misspelt rule, checked": Case(
        *POLICY,
        ("firnline.yaml:2", "'lastt'", "did you mean 'last'"),
        "within",
        ("policy", "check"),
        _policy("keep:\n  lastt: 3\n"),
    ),
    "misspelt rule in a property": Case(
        *POLICY,
        ("firnline.keep.dayly", "did you mean 'daily'"),
        "daily",
        PLAN,
        _with_property("firnline.keep.dayly", "7"),
    ),
    "a rule without a unit": Case(
        *POLICY, ("firnline.yaml:2", "within"), "30d", PLAN, _policy("keep:\n  within: 30\n")
    ),
    "a picture in no folder": Case(
        *USAGE, ("no such folder: /nosuch",), "make it", ("history", "lake.ns.events", "--plot", "/nosuch/x.svg")
    ),
    "dropped tables of no folder": Case(
        *USAGE, ("no such folder", "nosuch"), "tables under it", ("dropped", "./nosuch")
    ),
    "a flag without a unit": Case(*POLICY, ("--keep-within",), "30d", (*PLAN, "--keep-within", "30")),
    "a flag that keeps none": Case(*POLICY, ("--keep-last",), "1 or more", (*PLAN, "--keep-last", "0")),
    "a rule twice": Case(
        *POLICY, ("firnline.yaml:3", "twice", "line 2"), "", PLAN, _policy("keep:\n  last: 3\n  last: 4\n")
    ),
    "empty policy": Case(
        *POLICY, ("firnline.yaml:1", "empty policy"), "at least one rule", PLAN, _policy("keep: {}\n")
    ),
    "a policy that is off": Case(
        *POLICY, ("empty policy",), "at least one rule", PLAN, _policy("keep:\n  last: off\n  daily: off\n")
    ),
    "a policy that flags turn off": Case(
        *POLICY, ("empty policy", "events"), "at least one rule", (*PLAN, "--keep-last", "off"), _policy(KEEP_LAST)
    ),
    "not YAML": Case(*POLICY, ("firnline.yaml:2", "not YAML"), "", PLAN, _policy("keep: [\n")),
    "no such config": Case(*POLICY, ("none.yaml",), "--config", (*PLAN, "--config", "none.yaml")),
    "a folder as config": Case(*POLICY, ("ns",), "--config", (*PLAN, "--config", "ns")),
    "no such policy": Case(*POLICY, ("none.yaml",), "--policy", (*PLAN, "--policy", "none.yaml")),
    "an instant without a zone": Case(
        *TIMESTAMP, ("zone", "2026-01-05T00:00:00"), "Z", (*PLAN, "--older-than", "2026-01-05T00:00:00")
    ),
    "a now without a zone": Case(*TIMESTAMP, ("zone", "2026-01-05T00:00"), "Z", (*PLAN, "--now", "2026-01-05T00:00")),
    "no instant at all": Case(*TIMESTAMP, ("yesterday",), "Z", (*PLAN, "--older-than", "yesterday")),
    "an instant without a zone, asked why": Case(
        *TIMESTAMP, ("zone",), "Z", ("why", "lake.ns.events", "main", "--now", "2026-01-05T00:00:00")
    ),
    "--older-than beside a policy": Case(
        *USAGE,
        ("--older-than", "last 3"),
        "--keep-within",
        (*PLAN, "--older-than", "1787389200000"),
        _policy(KEEP_LAST),
    ),
    "--retain-last beside a policy": Case(
        *USAGE, ("--retain-last",), "--keep-last", (*PLAN, "--retain-last", "2"), _policy(KEEP_LAST)
    ),
    "--retain-last of none": Case(*USAGE, ("--retain-last", "0"), "", (*PLAN, "--retain-last", "0")),
    "--retain-last of something": Case(*USAGE, ("--retain-last",), "--help", (*PLAN, "--retain-last", "few")),
    "a list in an unknown form": Case(*USAGE, ("gone.json",), "OUT.parquet", (*PLAN, "--files", "gone.json")),
    "a list nowhere": Case(*USAGE, ("nowhere",), "make it first", (*PLAN, "--files", "nowhere/gone.csv")),
    "unknown engine": Case(*USAGE, ("'flink'",), "auto, local, spark", (*PLAN, "--engine", "flink")),
    "unknown option": Case(*USAGE, ("--olderthan",), "--help", (*PLAN, "--olderthan", "1")),
    "unknown command": Case(*USAGE, ("plam",), "--help", ("plam", "lake.ns.events")),
    "no table": Case(*USAGE, ("TABLE",), "--help", ("plan",)),
    "no policy file": Case(
        *POLICY, ("nosuch.yaml",), "--policy", ("plan", "lake.ns.events", "--policy", "nosuch.yaml")
    ),
    "no text of ours": Case(*POLICY, ("firnline.yaml:2 is not UTF-8",), "save the file as UTF-8", PLAN, _latin),
    "unknown snapshot": Case(*USAGE, ("'12'", "lake.ns.events"), "--list", ("why", "lake.ns.events", "12")),
    "unknown ref": Case(*USAGE, ("'nightly'",), "--list", ("why", "lake.ns.events", "nightly")),
    "nearly a ref": Case(*USAGE, ("'releas'",), "did you mean release?", ("why", "lake.ns.events", "releas")),
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    made: Case = request.param
    return made


def spoiled(lake: Lake, case: Case) -> tuple[list[str], list[str]]:
    """Returns the command and what its message must say, once the lake is as bad as the case wants it."""
    named = case.prepare(lake) or ""
    return [each.format(named) for each in case.arguments], [each.format(named) for each in case.says]


@pytest.mark.sampled(24)  # each case is told as JSON below, by the same message
def test_as_text(lake: Lake, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, says = spoiled(lake, case)
    before = lake.everything()
    assert run(arguments) == case.code
    shown = capsys.readouterr()
    assert shown.out == ""
    message, _, hint = shown.err.partition("\nhint: ")
    assert message.startswith("error: ")
    assert [each for each in says if each not in message] == []
    assert case.helps in hint
    assert bool(hint) or not case.helps
    assert lake.everything() == before


def test_as_json(lake: Lake, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, says = spoiled(lake, case)
    before = lake.everything()
    assert run([*arguments, "--json"]) == case.code
    shown = capsys.readouterr()
    assert shown.out == ""
    (error,) = json.loads(shown.err).values()
    assert error.keys() == {"kind", "message", "hint"}
    assert error["kind"] == case.kind
    assert [each for each in says if each not in error["message"]] == []
    assert case.helps in error["hint"]
    assert lake.everything() == before


def test_a_config_named_by_the_environment_is_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRNLINE_CONFIG", str(lake.folder / "other.yaml"))
    assert run([*PLAN]) == 2
    told = capsys.readouterr().err
    assert "other.yaml" in told
    assert "FIRNLINE_CONFIG" in told, "who sees the error may not know of the variable"


def test_an_engine_named_by_the_environment_is_checked(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRNLINE_ENGINE", "flink")
    assert run([*PLAN]) == 2
    assert "'flink'" in capsys.readouterr().err


@pytest.mark.parametrize(("named", "helps"), [("events", "did you mean lake.ns.events?"), ("x", "name it CATALOG.")])
def test_a_bare_name_is_told_the_table_that_has_it(
    lake: Lake, named: str, helps: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", named]) == 10
    assert capsys.readouterr().err.startswith(f"error: no such table: {named}\n\nhint: {helps}")


def test_two_catalogs_leave_a_short_name_ambiguous(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    config = lake.folder / ".pyiceberg.yaml"
    config.write_text(config.read_text() + "  shore:\n    type: sql\n    uri: sqlite:///none.db\n")
    assert run(["plan", "ns.events"]) == 10
    assert "lake, shore" in capsys.readouterr().err
    assert run([*PLAN]) == 0, "a catalog that cannot be opened does not keep a person from looking at another"
    assert "a run would refuse: there is no catalog at sqlite:///none.db" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [PLAN, ("why", "lake.ns.events", "/\udcff"), ("runs", "--table", "lake.\udcff"), ("dropped", "/\udcff")],
)
def test_bytes_that_are_no_text_are_refused(
    lake: Lake, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """What a terminal with another encoding sends, Python hands on as half of a pair of surrogates."""
    given = [*arguments, "lake.ns.\udcff"] if arguments is PLAN else [*arguments]
    assert run(given) == 2
    assert capsys.readouterr().err.startswith("error: an argument holds bytes that are no text: ")
