"""Planted secrets, searched for in everything that is written, sent or shown."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from firnline.errors import UsageError
from firnline.observing.metrics import Metrics
from firnline.observing.serving import Health, serve
from firnline.ports.observing.news import News
from observing.conftest import WatchedLake, command
from observing.test_observers import collector

PLANTED = "planted5ecret"


def test_no_secret_of_a_configuration_is_in_anything_that_tells_of_runs(watched: WatchedLake) -> None:
    """In the webhook's address, in settings of catalogs and stores, in tokens, in the key of records."""
    with collector([403]) as (address, heard):
        place = address.removeprefix("http://")
        watched.configure(
            f"audit: {watched.log}\nwebhook: http://user:{PLANTED}@{place}/services/{PLANTED}?token={PLANTED}\n"
        )
        secrets = {
            "PYICEBERG_CATALOG__LAKE__S3__SECRET_ACCESS_KEY": PLANTED,
            "PYICEBERG_CATALOG__LAKE__TOKEN": PLANTED,
            "AWS_SESSION_TOKEN": PLANTED,
            "FIRNLINE_RECORDS_KEY": f"{PLANTED}-{PLANTED}",
            "FIRNLINE_LOG": "json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://user:{PLANTED}@{place}",
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={PLANTED}",
        }
        commands = [
            ("expire", watched.world.table, "--grace", "1h", "--yes"),
            ("expire", "lake.db.none", "--yes"),
            ("undo", watched.world.table),
            ("audit", "show"),
            ("audit", "verify"),
            ("audit", "show", "--json"),
        ]
        ended = [command(*each, **secrets) for each in commands]
    assert [each.returncode for each in ended] == [0, 10, 0, 0, 0, 0], [each.stderr for each in ended]
    assert any(b"committing" in body for _, body in heard)
    said = [text for each in ended for text in (each.stdout, each.stderr)]
    said += [body.decode("utf-8", "replace") for _, body in heard]
    said += [path.read_text("utf-8", "replace") for path in watched.log.rglob("*") if path.is_file()]
    said += [path.read_text("utf-8", "replace") for path in _records(watched)]
    assert len(watched.entries) == 4
    assert [text for text in said if PLANTED in text] == []


def _records(watched: WatchedLake) -> list[Path]:
    found = [path for path in watched.world.folder.rglob("*.json") if "_firnline" in str(path)]
    assert found
    return found


def test_no_password_of_a_tables_address_gets_out() -> None:
    table = f"s3://user:{PLANTED}@host/t?token={PLANTED}"
    news = News(f"{table}@1", table, "expiry", None, "planned", 1, words={"why": f"http://u:{PLANTED}@h/"})
    assert PLANTED not in json.dumps(news.to_json())
    metrics = Metrics()
    metrics.hear(news)
    metrics.failed(table, UsageError.kind)
    with (
        serve("0", metrics, lambda: Health(True)) as address,
        urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer,
    ):
        text = answer.read().decode()
    assert "firnline_failures_total" in text
    assert PLANTED not in text
