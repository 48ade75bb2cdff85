"""Metrics, as Prometheus's own parser reads them, and the port that serves them."""

from __future__ import annotations

import json
import logging
import socket
import sys
import urllib.error
import urllib.request
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from firnline.app.observing import watching
from firnline.errors import UsageError
from firnline.observing.log_lines import JsonFormatter
from firnline.observing.metrics import MOST_TABLES, OTHER, SECONDS, Metrics
from firnline.observing.outlet import Outlet
from firnline.observing.serving import Health, parse_listen, serve
from firnline.ports.observing.news import News


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = [each for family in text_string_to_metric_families(metrics.text()) for each in family.samples]
    read = {(each.name, frozenset(each.labels.items())): each.value for each in found}
    assert len(read) == len(found), "a sample is told twice"
    return read


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, frozenset(labels.items())))


def move(after: str | None, state: str, table: str = "t", **said: Any) -> News:
    return News(f"{table}@1", table, "expiry", after, state, 5_000, **said)


def a_run(table: str = "t") -> list[News]:
    return [
        move(None, "planned", table),
        move("planned", "committing", table, took_ms=2_000),
        move("committing", "committed", table, took_ms=500, figures={"snapshots": 3}),
        move("committed", "purging", table, took_ms=90_000_000),
        move("purging", "done", table, took_ms=0, figures={"deleted_files": 7, "deleted_bytes": 900}),
    ]


def test_a_run_is_counted() -> None:
    metrics = Metrics(dropped=lambda: 4)
    for news in a_run():
        metrics.hear(news)
    metrics.tables(inside=5, outside=2)
    assert value(metrics, "firnline_run_moves_total", table="t", kind="expiry", state="done") == 1
    assert value(metrics, "firnline_deleted_files_total", table="t") == 7
    assert value(metrics, "firnline_deleted_bytes_total", table="t") == 900
    assert value(metrics, "firnline_expired_snapshots_total", table="t") == 3
    assert value(metrics, "firnline_last_success_timestamp_seconds", table="t") == 5
    assert value(metrics, "firnline_tables", policy="outside") == 2
    assert value(metrics, "firnline_news_dropped_total") == 4
    assert value(metrics, "firnline_stage_seconds_bucket", state="planned", le="1") == 0
    assert value(metrics, "firnline_stage_seconds_bucket", state="planned", le="10") == 1
    assert value(metrics, "firnline_stage_seconds_sum", state="committed") == 90_000


def test_an_undo_that_failed_counts_no_snapshot_again() -> None:
    metrics = Metrics()
    for news in (*a_run()[:3], move("committed", "undoing"), move("undoing", "committed", figures={"snapshots": 3})):
        metrics.hear(news)
    assert value(metrics, "firnline_expired_snapshots_total", table="t") == 3


def test_a_failure_is_counted_by_its_kind_and_moves_nothing() -> None:
    metrics = Metrics()
    metrics.hear(move("purging", "purging", error="deletes-failed"))
    metrics.failed("t", "no-such-table")
    assert value(metrics, "firnline_failures_total", table="t", error="deletes-failed") == 1
    assert value(metrics, "firnline_failures_total", table="t", error="no-such-table") == 1
    assert "moves" not in metrics.text()


def test_tables_beyond_a_thousand_share_one_name() -> None:
    metrics = Metrics()
    for each in range(MOST_TABLES + 50):
        metrics.hear(move(None, "planned", f"t{each}"))
    told = {dict(labels)["table"] for (name, labels) in samples(metrics) if name == "firnline_run_moves_total"}
    assert len(told) == MOST_TABLES + 1
    assert value(metrics, "firnline_run_moves_total", table=OTHER, kind="expiry", state="planned") == 50


@settings(max_examples=100, deadline=None)
@given(table=st.text(st.characters(exclude_categories=("Cs",)), max_size=20), took=st.integers(0, 10**10))
def test_whatever_a_table_is_called_the_text_can_be_read(table: str, took: int) -> None:
    metrics = Metrics()
    metrics.hear(move("planned", "committing", table, took_ms=took))
    assert value(metrics, "firnline_run_moves_total", table=table, kind="expiry", state="committing") == 1
    bounds = [*map(float, SECONDS), float("inf")]
    counts = [
        number
        for (name, labels), number in sorted(samples(metrics).items(), key=lambda each: _bound(dict(each[0][1])))
        if name == "firnline_stage_seconds_bucket"
    ]
    assert counts == [float(took / 1000 <= bound) for bound in bounds]


def _bound(labels: dict[str, str]) -> float:
    return float(labels.get("le", "0"))


def asked(address: str, path: str) -> tuple[int, str, bytes]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, problem.headers["Content-Type"], problem.read()


def test_the_port_answers_metrics_and_health() -> None:
    metrics, health = Metrics(), [Health(True, {"tables": 3})]
    metrics.hear(move(None, "planned"))
    with serve("0", metrics, lambda: health[0]) as address:
        assert address.startswith("127.0.0.1:")
        code, kind, body = asked(address, "/metrics")
        assert (code, kind, body.decode()) == (200, "text/plain; version=0.0.4; charset=utf-8", metrics.text())
        assert asked(address, "/healthz")[::2] == (200, b'{"ok": true, "tables": 3}')
        health[0] = Health(False, {"why": "no catalog answers"})
        code, _, body = asked(address, "/healthz")
        assert (code, json.loads(body)) == (503, {"ok": False, "why": "no catalog answers"})
        assert asked(address, "/")[0] == 404
        with pytest.raises(UsageError, match="cannot listen"), serve(address, metrics, lambda: health[0]):
            pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(address.partition(":")[2])), timeout=2).close()


def test_a_question_of_health_that_crashes_is_an_answer() -> None:
    def crash() -> Health:
        raise RuntimeError("plantedsecret")

    with serve("127.0.0.1:0", Metrics(), crash) as address:
        code, _, body = asked(address, "/healthz")
    assert (code, json.loads(body)) == (503, {"ok": False, "error": "RuntimeError"})


def test_a_client_that_says_nothing_keeps_nobody_waiting() -> None:
    with serve("0", Metrics(), lambda: Health(True)) as address:
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port))):
            assert asked(address, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("text", "place"), [("9464", ("127.0.0.1", 9464)), ("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:9", ("::1", 9))]
)
def test_places_to_listen_at(text: str, place: tuple[str, int]) -> None:
    assert parse_listen(text) == place


@pytest.mark.parametrize("text", ["", "x", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "1:٣"])
def test_what_is_no_place_to_listen_at_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_listen(text)


def test_what_found_no_room_is_counted_over_all_that_was_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker opens a webhook anew in every round: the count of a closed one stays."""
    monkeypatch.setattr(watching, "_lost", [])
    metrics = Metrics(watching.dropped_news)
    for number in range(1, 3):
        held = Event()
        outlet = Outlet(lambda news, dropped, held=held: held.wait(10), room=1)  # type: ignore[misc]
        watching._open.append(outlet)
        for _ in range(9):
            outlet.hear(move(None, "planned"))
        assert value(metrics, "firnline_news_dropped_total") >= 7 * number  # type: ignore[operator]
        held.set()
        watching.end_watch()
        assert value(metrics, "firnline_news_dropped_total") >= 7 * number  # type: ignore[operator]


def test_a_line_of_the_log_has_the_trace_of_an_error_without_its_secrets() -> None:
    try:
        raise ValueError("http://u:hunter2@host/x")
    except ValueError:
        record = logging.LogRecord("firnline", logging.ERROR, "", 1, "it broke", None, sys.exc_info())
    said = JsonFormatter().format(record)
    assert "\n" not in said
    assert "ValueError: http://***@host/x" in json.loads(said)["trace"]
    plain = logging.LogRecord("firnline", logging.INFO, "", 1, "all is well", None, None)
    assert "trace" not in json.loads(JsonFormatter().format(plain))
