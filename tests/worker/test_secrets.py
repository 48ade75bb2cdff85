"""Planted secrets of catalogs, stores, webhooks, keys and collectors are in nothing that a worker, or a look at what it
did, writes, sends or shows: not even where servers quote in their errors what they were sent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.observing.test_observers import collector
from tests.worker.planted import SECRETS, in_bucket, in_folder, leaks, quoting
from tests.worker.test_listening import wait_for

FIRNLINE = str(Path(sys.executable).with_name("firnline"))
CONFIGURED = ("firnline.yaml", ".pyiceberg.yaml")
"""The files in which the operator wrote the secrets down."""
DONE = 'firnline_run_moves_total{table="lake.db.t",kind="expiry",state="done"} 1'


def planted(name: str) -> str:
    """Returns a secret as it stands in an address."""
    return quote(SECRETS[name], safe="")


@dataclass
class PlantedLake:
    """One table in a bucket and a PostgreSQL catalog, REST catalogs that quote what they are sent; a webhook and a
    collector that fail. `said` is all that commands wrote.
    """

    folder: Path
    server: Server
    bucket: str
    catalogs: dict[str, dict[str, str]]
    environment: dict[str, str]
    said: list[tuple[str, bytes]] = field(default_factory=list)
    heard: list[tuple[str, bytes]] = field(default_factory=list)

    def configure(self, **changed: dict[str, str]) -> None:
        found = {**self.catalogs, **changed}
        (self.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": found}))

    def firnline(self, *arguments: str) -> str:
        """Returns all that one command says."""
        ended = subprocess.run(
            [FIRNLINE, *arguments], env=self.environment, cwd=self.folder, capture_output=True, check=False, timeout=240
        )
        shown = ended.stdout + ended.stderr
        self.said.append((f"{' '.join(arguments)} ended with {ended.returncode}", shown))
        return shown.decode()

    def shown(self) -> str:
        """Returns the texts in which a secret stands, for a person to look at."""
        bad = {place for place, _ in self.leaks()}
        return "\n".join(f"{place}: {data!r:.3000}" for place, data in self.said if place in bad)

    def leaks(self) -> list[tuple[str, str]]:
        """Returns what leaked: by commands, in files, in the bucket, to the webhook and the collector."""
        sent = [("sent to the webhook or the collector", body) for _, body in self.heard]
        files, objects = in_folder(self.folder, *CONFIGURED), in_bucket(self.server, self.bucket.removeprefix("s3://"))
        return leaks([*self.said, *sent, *files, *objects])


@pytest.fixture
def lake(tmp_path: Path, moto_server: Server, database: Server) -> Iterator[PlantedLake]:
    with collector([500]) as (address, heard), quoting() as quotes:
        place, bucket = address.removeprefix("http://"), make_bucket(moto_server, unique("planted"))
        keys = {"s3.secret-access-key": SECRETS["store"], "s3.session-token": SECRETS["session"]}
        uri = database.url.replace("firnline@", f"firnline:{planted('database')}@")
        own = {"type": "sql", "uri": uri, "warehouse": f"{bucket}/warehouse", **moto_server.settings, **keys}
        hook = f"http://u:{planted('hook-user')}@{place}/{planted('hook-path')}?token={planted('hook-query')}"
        (tmp_path / "firnline.yaml").write_text(
            f"keep: {{last: 2}}\ngrace: 0s\nblast-radius: 100%\nsharing: none\naudit: {bucket}/warehouse/log\n"
            f"webhook: {hook}\nworker: {{every: 1s, orphans: 1s}}\n"
        )
        catalogs = {"lake": own, **_that_quote(quotes)}
        made = PlantedLake(tmp_path, moto_server, bucket, catalogs, _environment(tmp_path, place), heard=heard)
        made.configure()
        _write_table(own)
        yield made


def _that_quote(place: str) -> dict[str, dict[str, str]]:
    """Returns catalogs of a server that quotes, one for each way of signing in."""
    basic = {"auth.type": "basic", "auth.basic.username": "a", "auth.basic.password": SECRETS["basic"]}
    signing = {"credential": f"client:{SECRETS['credential']}", "header.X-Api-Key": SECRETS["header"]}
    return {
        "quotes": {"type": "rest", "uri": f"http://someone:{planted('user')}@{place}", **signing},
        "bearer": {"type": "rest", "uri": f"http://{place}", "token": SECRETS["token"]},
        "basic": {"type": "rest", "uri": f"http://{place}", **basic},
    }


def _environment(folder: Path, collects: str) -> dict[str, str]:
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("PYICEBERG_", "FIRNLINE_"))}
    return {
        **mine,
        "HOME": str(folder),
        "PYICEBERG_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "own"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "FIRNLINE_ENGINE": "local",
        "FIRNLINE_RECORDS_KEY": SECRETS["records-key"],
        "FIRNLINE_CACHE": f"redis://:{planted('redis')}@127.0.0.1:9/0",
        "FIRNLINE_CACHE_KEY": SECRETS["cache-key"],
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://u:{planted('spans-user')}@{collects}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={planted('spans-header')}",
    }


def _write_table(settings: dict[str, str]) -> None:
    theirs = load_catalog("lake", **settings)
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", schema=pa.schema([("x", pa.int64())]))
    for value in range(4):
        table.append(pa.table({"x": [value]}))


def test_the_search_finds_what_is_planted_on_purpose(lake: PlantedLake) -> None:
    """In a file as Basic sends it, in what a command says percent-encoded, and in what the webhook is sent."""
    assert lake.leaks() == []
    (lake.folder / "note").write_bytes(b64encode(f"u:{SECRETS['basic']}".encode()))
    lake.said.append(("out", b"x" + planted("token").encode()))
    lake.heard.append(("/hook", SECRETS["store"].encode()))
    assert {name for _, name in lake.leaks()} == {"basic", "token", "store"}


@pytest.mark.full
def test_a_worker_and_looks_at_what_it_did_show_no_secret(lake: PlantedLake) -> None:
    with _listening(lake) as place:
        lake.said.append(("metrics", wait_for(place, DONE).encode()))
        with urlopen(place.replace("/metrics", "/healthz"), timeout=10) as answered:
            lake.said.append(("health", answered.read()))
    away = {"type": "rest", "uri": f"http://someone:{planted('user')}@127.0.0.1:9"}
    lake.configure(gone={**away, "credential": f"client:{SECRETS['credential']}"})
    assert "gone" in lake.firnline("worker", "--once", "--memory", "memory.json")
    lake.configure()
    for command in ("audit show", "runs lake.db.t --json", "doctor", "doctor lake.db.t --json", "plan quotes.db.t"):
        lake.firnline(*command.split())
    assert any(b"committing" in body for _, body in lake.heard)
    assert lake.leaks() == [], lake.shown()


@contextmanager
def _listening(lake: PlantedLake) -> Iterator[str]:
    """Yields where a worker tells of itself; what it said by its end is kept."""
    command = [FIRNLINE, "--log", "json", "worker", "--json", "--listen", "0", "--memory", "memory.json"]
    process = subprocess.Popen(
        command, env=lake.environment, cwd=lake.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        yield process.stderr.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        lake.said += zip(("out", "err"), process.communicate(timeout=60), strict=True)


@pytest.mark.full
def test_stores_and_databases_that_fail_show_none(lake: PlantedLake) -> None:
    """A store that quotes what it was sent, one without an answer, a database that is not there, files that are broken
    in the line of a secret.
    """
    own = lake.catalogs["lake"]
    with quoting(store=True) as quotes:
        lake.configure(lake={**own, "s3.endpoint": f"http://{quotes}"})
        assert "access-denied" in lake.firnline("worker", "--once", "--json", "--memory", "memory.json")
        lake.firnline("doctor", "lake.db.t")
    lake.configure(lake={**own, "s3.endpoint": "http://127.0.0.1:9"})
    assert "unreachable" in lake.firnline("plan", "lake.db.t", "--json")
    lake.configure(lake={**own, "uri": own["uri"].replace("/test-", "/none-")})
    assert "does not exist" in lake.firnline("worker", "--once", "--memory", "memory.json")
    (lake.folder / "firnline.yaml").write_text(f"webhook: [http://u:{planted('hook-user')}@h/{planted('hook-path')}\n")
    assert '"policy"' in lake.firnline("worker", "--once", "--json")
    (lake.folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    token: '{SECRETS['token']}\n")
    assert "cannot be read" in lake.firnline("tables", "--config", "/dev/null")
    assert lake.leaks() == [], lake.shown()
