"""`firnline doctor` says what is wrong and what to do, one line each; it changes nothing and tells no secret."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import firnline
from firnline.caches.opening import OpenedCache
from firnline.catalogs.config import CatalogSettings
from firnline.cli.main import run
from firnline.extras import EXTRAS
from firnline.foreign import HIDDEN, Veil, secrets_in
from firnline.ops.looking.doctor import Patient, diagnose
from firnline.ops.looking.findings import USED_BY, Finding, Severity, java, veiled
from firnline.stores.objects import ObjectStores
from firnline.stores.probe import StoreProbe
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import SmallTable
from harness.servers.moto import enforce, moto
from harness.servers.process import Server
from harness.servers.redis import redis
from harness.servers.s3 import client, make_bucket

Found = dict[str, dict[str, str]]


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Found]:
    """Returns the exit code, and the findings by topic: of several, the worst."""
    code = run(["doctor", *arguments, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["well"] == (code == 0)
    levels = [level.value for level in Severity]
    best_first = sorted(said["findings"], key=lambda each: levels.index(each["level"]))
    return code, {each["topic"]: each for each in best_first}


# ---------------------------------------------------------------- a lake on this machine


def test_a_sound_lake_has_no_problem_and_is_left_as_it_was(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = lake.everything()
    code, found = doctor(capsys)
    assert code == 0
    assert {"versions", "java", "configuration", "engine", "cache", "catalog lake", "store of lake"} <= found.keys()
    assert "1 table" in found["catalog lake"]["said"]
    code, found = doctor(capsys, "lake.ns.events")
    assert code == 0
    assert {name: found[name]["level"] for name in ("list", "get", "put", "delete", "clock agrees")} == dict.fromkeys(
        ("list", "get", "put", "delete", "clock agrees"), "ok"
    )
    assert lake.everything() == before


def test_text_has_a_line_for_each_finding_and_hints_at_the_end(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy("keep: {last: many}\n")
    assert run(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "problem  configuration" in said
    assert "1 problem\n" in said
    assert "hint: configuration: " in said.splitlines()[-1]


def test_without_any_catalog_nothing_is_called_well(
    lake: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (lake.folder / ".pyiceberg.yaml").unlink()
    assert run(["doctor"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-3] == "no catalog is configured: nothing else could be looked at"
    assert said[-1].startswith("hint: catalogs: name one in PyIceberg's configuration: .pyiceberg.yaml or PYICEBERG_")
    assert said[-3] in firnline.open().doctor()._repr_html_()
    assert run(["doctor", lake.events.location]) == 0
    assert "no problem was found" in capsys.readouterr().out, "a table was looked at"


def test_a_file_that_is_no_yaml_is_to_be_mended_and_not_to_be_reached(
    lake: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.policy("keep: {last: 3\n")
    assert run(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "hint: configuration: mend it as it says, then ask again"


def test_trouble_with_one_thing_hides_nothing_else(
    lake: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.policy("keeep: {last: 3}\n")
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__URI", "sqlite:////nowhere/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PG__URI", "postgresql+psycopg://me:hunter2@127.0.0.1:1/lake")
    monkeypatch.setenv("PYICEBERG_CATALOG__REST__URI", "http://127.0.0.1:1/")
    monkeypatch.setenv("FIRNLINE_CACHE", "redis://me:hunter2@127.0.0.1:1/0")
    code, found = doctor(capsys)
    assert code == 1
    problems = {topic for topic, each in found.items() if each["level"] == "problem"}
    assert problems == {"configuration", "catalog gone", "catalog pg", "catalog rest"}
    assert all(found[topic]["hint"] for topic in problems)
    assert found["cache"]["level"] == "warning"
    assert found["catalog lake"]["level"] == "ok"


def test_only_what_was_named_is_asked(
    lake: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__URI", "sqlite:////nowhere/catalog.db")
    for what in ("lake", "lake.ns.events"):
        code, found = doctor(capsys, what)
        assert code == 0
        assert "catalog gone" not in found
    assert doctor(capsys, "gone")[0] == 1


def test_a_table_that_is_not_there_is_a_problem(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = doctor(capsys, "lake.ns.event")
    assert code == 1
    assert "events" in found["table"]["hint"] + found["table"]["said"]


def test_redis_that_answers_is_well(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with redis(tmp_path) as server:
        monkeypatch.setenv("FIRNLINE_CACHE", server.settings["url"])
        assert doctor(capsys)[1]["cache"] == {
            "level": "ok", "topic": "cache", "said": f"{server.settings['url']} answers", "hint": "",
        }  # fmt: skip
        monkeypatch.delenv("FIRNLINE_CACHE_KEY")
        assert "FIRNLINE_CACHE_KEY" in doctor(capsys)[1]["cache"]["said"]


# ---------------------------------------------------------------- versions


def fake_java(folder: Path, release: str | None) -> Path:
    """Makes a Java that leaves a mark if anybody starts it."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\ntouch {folder}/started\n")
    program.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return folder


@pytest.mark.parametrize(
    ("release", "level", "words"),
    [
        ("17.0.15", "ok", "17.0.15"),
        ("25", "ok", "25"),
        ("11.0.2", "warning", "too old"),
        ("1.8.0_392", "warning", "8.0_392"),
        (None, "warning", "not tell"),
    ],
)
def test_java_is_told_by_the_file_beside_it_and_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str | None, level: str, words: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", release)))
    found = java()
    assert found.level == level
    assert words in found.said
    assert not (tmp_path / "jdk" / "started").exists()


def test_without_java_only_spark_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert java().level is Severity.WARNING


def test_each_extra_that_is_missing_is_told_with_who_needs_it(
    lake: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert USED_BY.keys() == EXTRAS.keys()
    nowhere = {name for names in EXTRAS.values() for name in names}
    version = metadata.version

    def bare(name: str) -> str:
        if name in nowhere:
            raise metadata.PackageNotFoundError
        return version(name)

    monkeypatch.setattr(metadata, "version", bare)
    assert run(["doctor"]) == 0
    said = capsys.readouterr().out
    assert [f"without what {who} needs" in said for who in USED_BY.values()] == [True] * len(EXTRAS)


def test_a_doctor_starts_no_spark(lake: Any) -> None:
    code = "import sys; from firnline.cli.main import run; run(['doctor', 'lake.ns.events'])"
    code += "; print('pyspark' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=lake.folder)
    assert said.stdout.splitlines()[-1] == "False"


# ---------------------------------------------------------------- a table on S3


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own, because some tests have it turn strangers away."""
    with moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


class Puts:
    def __init__(self, server: Server) -> None:
        self._client = client(server)

    def put(self, key: str, data: bytes) -> None:
        bucket, _, name = key.removeprefix("s3://").partition("/")
        self._client.put_object(Bucket=bucket, Key=name, Body=data)


def table_on(server: Server, lake: Any, bucket: str) -> None:
    """Registers a table in the bucket as lake.ns.far, and reaches it by the catalog's settings."""
    table = SmallTable(Puts(server), f"s3://{bucket}/ns/far", AvroLayout(2))
    table.append()
    lake.register("far", table.publish())
    settings(lake, server.settings)


def settings(lake: Any, values: Any) -> None:
    config = lake.folder / ".pyiceberg.yaml"
    lines = [line for line in config.read_text().splitlines() if "s3." not in line]
    config.write_text("\n".join([*lines, *(f"    {name}: '{value}'" for name, value in values.items())]) + "\n")


def keys(server: Server, bucket: str) -> set[str]:
    return {each["Key"] for each in client(server).list_objects_v2(Bucket=bucket).get("Contents", ())}


def test_a_table_on_s3_is_tried_and_left_as_it_was(lake: Any, s3: Server, capsys: pytest.CaptureFixture[str]) -> None:
    make_bucket(s3, "sound")
    table_on(s3, lake, "sound")
    before = keys(s3, "sound")
    code, found = doctor(capsys, "lake.ns.far")
    assert code == 0, found
    assert found["put if absent refuses"]["level"] == "ok"
    assert found["put honours If-Match"]["level"] == "ok"
    assert "deletes" not in found
    assert keys(s3, "sound") == before


def test_a_bucket_with_versions_is_a_warning(lake: Any, s3: Server, capsys: pytest.CaptureFixture[str]) -> None:
    make_bucket(s3, "versioned", versioned=True)
    table_on(s3, lake, "versioned")
    code, found = doctor(capsys, "lake.ns.far")
    assert code == 0
    assert found["deletes"]["level"] == "warning"


def test_strangers_and_missing_buckets_are_problems(lake: Any, s3: Server, capsys: pytest.CaptureFixture[str]) -> None:
    make_bucket(s3, "guarded")
    table_on(s3, lake, "guarded")
    settings(lake, {**s3.settings, "s3.access-key-id": "nobody", "s3.secret-access-key": "not-a-secret-of-anyone"})
    enforce(s3)
    try:
        code, found = doctor(capsys, "lake.ns.far")
    finally:
        enforce(s3, on=False)
    assert code == 1
    assert found["table"]["hint"]
    settings(lake, s3.settings)
    lake.register("far", "s3://no-such-bucket/ns/far/metadata/v1.metadata.json")
    code, found = doctor(capsys, "lake.ns.far")
    assert code == 1
    assert "no-such-bucket" in found["table"]["said"]


# ---------------------------------------------------------------- secrets

PLANTED = {
    "s3.access-key-id": "AKIA-PLANTED-1",
    "s3.secret-access-key": "planted/secret+2",
    "s3.session-token": "planted-token-3",
    "token": "planted-bearer-4",
    "credential": "client-5:planted-client-secret-5",
    "adls.account-key": "planted-account-key-6",
    "adls.sas-token": "planted-sas-7",
    "gcs.oauth2.token": "planted-gcs-8",
    "header.Authorization": "Bearer planted-header-9",
    "py-io.password": "planted password 10",
}
KEY_ID = PLANTED["s3.access-key-id"]
"""Who asks is no secret: stores name it in their answers."""
SECRETS = [
    *({*PLANTED.values()} - {KEY_ID}),
    "planted-client-secret-5",
    "pg-planted-11",
    "redis-planted-12",
    "planted-cache-key-13",
]
SECRETS += ["planted%2Fsecret%2B2", "planted-env-14", "planted-query-15"]


@pytest.fixture
def planted(lake: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lake with a secret in every setting that takes one, and nothing behind most of them."""
    uris = {
        "pg": "postgresql+psycopg://me:pg-planted-11@127.0.0.1:1/lake",
        "odd": "postgresql+psycopg://me:pg-planted-11@127.0.0.1:not-a-port/lake",
        "rest": "http://me:pg-planted-11@127.0.0.1:1/?token=planted-query-15",
        "hive": "thrift://me:pg-planted-11@127.0.0.1:1",
        "bucket": f"sqlite:///{lake.folder}/catalog.db",
    }
    lines = ["catalog:"]
    for name, uri in uris.items():
        lines += [f"  {name}:", f"    uri: '{uri}'", "    s3.endpoint: http://127.0.0.1:1"]
        lines += [f"    {key}: '{value}'" for key, value in PLANTED.items()]
    (lake.folder / ".pyiceberg.yaml").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("FIRNLINE_CACHE", "redis://me:redis-planted-12@127.0.0.1:1/0")
    monkeypatch.setenv("FIRNLINE_CACHE_KEY", "planted-cache-key-13")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-env-14")
    return lake


COMMANDS = [
    ["doctor"],
    ["doctor", "--json"],
    ["doctor", "bucket.ns.events"],
    ["doctor", "rest.ns.events"],
    ["doctor", "odd.ns.events"],
    ["tables"],
    ["tables", "odd"],
    ["plan", "pg.ns.events"],
    ["plan", "rest.ns.events", "--json"],
    ["plan", "odd.ns.events"],
    ["iam", "expire", "--table", "pg.ns.events"],
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_secret_is_in_any_output(planted: Any, arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Also not in what Python prints of an error that nobody expected."""
    try:
        run(arguments)
    except Exception:
        traceback.print_exc()
    said = "".join(capfd.readouterr())
    assert said
    assert [secret for secret in SECRETS if secret in said] == []


def test_a_broken_file_of_pyiceberg_is_said_without_its_lines(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (lake.folder / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n    token: [planted-bearer-4\n  x\n")
    run(["doctor"])
    run(["doctor", "--json"])
    said = capsys.readouterr()
    assert "planted-bearer-4" not in said.out + said.err


def test_a_veil_hides_every_spelling_and_leaves_words_alone() -> None:
    veil = Veil(secrets_in([("s3.secret-access-key", "a b/c+d"), ("user", "somebody"), ("key", "no")]))
    for said in ("a b/c+d", "a%20b%2Fc%2Bd", "a+b%2Fc%2Bd"):
        assert veil.over(f"failed with {said}!") == f"failed with {HIDDEN}!"
    assert veil.over("somebody has no key") == "somebody has no key"
    assert veil.over("redis://me:pass@host/0") == f"redis://{HIDDEN}@host/0"
    assert Veil().over("http://host:80/x") == "http://host:80/x"
    hidden = veiled(Finding(Severity.OK, "a b/c+d", "a b/c+d", "a b/c+d"), veil)
    assert (hidden.topic, hidden.said, hidden.hint) == (HIDDEN, HIDDEN, HIDDEN)


def test_the_name_of_a_key_is_no_secret_and_hides_no_word(
    lake: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store that is known by its product's name, with that name as the id of its key, as many are set up."""
    lines = [
        "catalog:", "  minio:", f"    uri: sqlite:///{lake.folder}/minio.db", "    warehouse: s3://minio-lake/tables",
        "    s3.endpoint: http://minio:minio-secret-1@127.0.0.1:1", "    s3.access-key-id: minio",
        "    s3.secret-access-key: minio-secret-1",
    ]  # fmt: skip
    (lake.folder / ".pyiceberg.yaml").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "minio")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "minio-secret-1")
    for form in ([], ["--json"]):
        run(["doctor", *form])
        said = "".join(capsys.readouterr())
        assert "catalog minio" in said
        assert "store of minio" in said
        assert "minio-secret-1" not in said


def test_settings_that_are_no_secrets_stay_readable() -> None:
    names = [
        "s3.access-key-id",
        "AWS_ACCESS_KEY_ID",
        "client_id",
        "adls.client-id",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "SSH_AUTH_SOCK",
        "uri",
        "oauth2-server-uri",
        "s3.signer.endpoint",
        "auth.type",
        "rest.sigv4-enabled",
        "warehouse",
    ]
    assert secrets_in((name, "a value") for name in names) == []
    for name in (*(PLANTED.keys() - {"s3.access-key-id"}), "VAULT_SECRET_ID", "auth.session-id", "s3.session-token-id"):
        assert secrets_in([(name, "a value")]), name


def test_the_address_of_a_catalog_that_works_is_shown_without_its_password() -> None:
    uri = "postgresql://me:pg-planted-11@host/lake?token=planted-query-15"
    works = CatalogSettings("prod", "sql", uri, {"uri": uri})
    patient = Patient(
        config_file=None,
        engine="auto",
        config=lambda: None,
        catalogs=lambda: {"prod": works},
        tables=lambda name: [],
        cache=lambda: OpenedCache("off"),
        store=lambda facts: ObjectStores(),
        probe=lambda facts: StoreProbe(),
        table=None,
    )
    found = {each.topic: each.said for each in diagnose(patient, Veil()).findings}
    assert found["catalog prod"] == f"sql, postgresql://{HIDDEN}@host/lake: 0 tables"
