"""Those who hear of runs: what they are told, and that no run waits for them."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from firnline.observing.log_lines import LogLines
from firnline.observing.outlet import Outlet, close_all
from firnline.observing.webhook import Webhook
from firnline.patience import Patience
from firnline.ports.observing.news import News
from firnline.ports.observing.watch import RunWatch
from observing.conftest import WatchedLake, command

QUICK = Patience(attempts=4, base_delay_s=0.01, max_delay_s=0.02, budget_s=5)


def news(number: int = 1, **said: Any) -> News:
    return News(f"t@{number}", "t", "expiry", "planned", "committing", 1_000, {"files": number}, **said)


@contextmanager
def collector(answers: list[int]) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that answers with these codes, the last of them for ever; and what it was sent."""
    heard: list[tuple[str, bytes]] = []

    class Hears(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *said: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hears) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()


@contextmanager
def silence() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_webhook_is_told_again_until_it_answers() -> None:
    with collector([503, 429, 200]) as (address, heard):
        Webhook(f"{address}/hook", QUICK).deliver(news(), 3)
    assert [path for path, _ in heard] == ["/hook"] * 3
    said = json.loads(heard[-1][1])
    assert (said["run"], said["from"], said["to"], said["dropped"]) == ("t@1", "planned", "committing", 3)
    assert said["figures"] == {"files": 1}


def test_what_a_webhook_refuses_is_not_sent_again_and_logged_once_without_its_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with collector([403]) as (address, heard):
        hook = Webhook(f"{address}/services/T0/plantedsecret?token=plantedsecret", QUICK)
        hook.deliver(news(1), 0)
        hook.deliver(news(2), 0)
    assert len(heard) == 2
    assert len(caplog.records) == 1
    assert "plantedsecret" not in caplog.text
    assert "127.0.0.1" in caplog.text


def test_a_webhook_that_nobody_listens_at_says_so_without_its_address(caplog: pytest.LogCaptureFixture) -> None:
    Webhook("http://user:plantedsecret@127.0.0.1:1/plantedsecret", QUICK).deliver(news(), 0)
    assert "ConnectionError" in caplog.text
    assert "plantedsecret" not in caplog.text


def test_an_address_that_hangs_delays_nobody_and_what_is_dropped_is_counted() -> None:
    with silence() as address:
        outlet = Outlet(Webhook(address, QUICK, timeout_s=30).deliver, room=10)
        watch = RunWatch(observers=(outlet,))
        began = time.monotonic()
        for each in range(100):
            watch.tell(news(each))
        close_all([outlet], within_s=0.3)
        assert time.monotonic() - began < 2
        assert 88 <= outlet.dropped <= 90


def test_the_next_news_tell_how_many_were_dropped() -> None:
    gate, heard = threading.Event(), list[tuple[str, int]]()

    def slow(told: News, dropped: int) -> None:
        gate.wait(10)
        heard.append((told.run, dropped))

    outlet = Outlet(slow, room=2)
    outlet.hear(news(1))
    until = time.monotonic() + 10
    while outlet._waiting.qsize() and time.monotonic() < until:
        time.sleep(0.005)
    for each in range(2, 8):
        outlet.hear(news(each))
    gate.set()
    assert outlet.close()
    outlet.hear(news(8))
    assert outlet.close()
    assert heard == [("t@1", 0), ("t@2", 4), ("t@3", 0), ("t@8", 0)]


def test_an_observer_that_raises_stops_neither_the_run_nor_the_others() -> None:
    class Raises:
        def hear(self, told: News) -> None:
            raise OSError(28, "No space left on device")

    def full(told: News, dropped: int) -> None:
        raise OSError(28, "No space left on device")

    heard: list[str] = []
    broken, well = Outlet(full), Outlet(lambda told, dropped: heard.append(told.run))
    watch = RunWatch(observers=(Raises(), broken)).joined(well)
    for each in range(3):
        watch.tell(news(each))
    assert broken.close()
    assert well.close()
    assert (broken.failed, heard) == (3, ["t@0", "t@1", "t@2"])


def test_a_line_is_one_line_whatever_a_name_has_in_it() -> None:
    target = io.StringIO()
    LogLines(target).deliver(News("a\n\x1b[2J\u202et@1", "x", "expiry", None, "planned", 5, error="refused"), 2)
    assert target.getvalue().count("\n") == 1
    assert target.getvalue().isascii()
    assert "\x1b" not in target.getvalue()
    said = json.loads(target.getvalue())
    assert (said["level"], said["event"], said["dropped"], said["error"]) == ("error", "run", 2, "refused")
    assert said["run"] == "a\n\x1b[2J\u202et@1"


def test_a_command_tells_logs_and_a_webhook_of_every_stage(watched: WatchedLake) -> None:
    with collector([200]) as (address, heard):
        watched.configure(f"webhook: {address}/hook\n")
        ended = command("--log", "json", "expire", watched.world.table, "--grace", "0s", "--yes")
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    stages = [(None, "planned"), ("planned", "committing"), ("committing", "committed"), ("committed", "purging")]
    stages.append(("purging", "done"))
    assert [(line["from"], line["to"]) for line in lines if line["event"] == "run"] == stages
    assert len({line["run"] for line in lines if line["event"] == "run"}) == 1
    assert [(said["from"], said["to"]) for said in (json.loads(body) for _, body in heard)] == stages


@pytest.mark.full
def test_a_command_whose_webhook_hangs_ends_all_the_same(watched: WatchedLake) -> None:
    with silence() as address:
        began = time.monotonic()
        ended = command("expire", watched.world.table, "--grace", "0s", "--yes", FIRNLINE_WEBHOOK=address)
        assert ended.returncode == 0, ended.stderr
        assert time.monotonic() - began < 120
    watched.world.check()


def test_an_error_is_a_line_of_the_log_too(watched: WatchedLake) -> None:
    ended = command("plan", "lake.db.none", FIRNLINE_LOG="json")
    assert ended.returncode == 10
    assert json.loads(ended.stderr.splitlines()[-1])["error"]["kind"] == "no-such-table"


@pytest.mark.parametrize("arguments", [["--log", "xml", "tables"]])
def test_a_form_that_does_not_exist_is_refused(watched: WatchedLake, arguments: list[str]) -> None:
    code, _, err = watched(*arguments)
    assert (code, json.loads(err)["error"]["kind"]) == (2, "usage")


@pytest.mark.parametrize("address", ["ftp://x/y", "plantedsecret", "http://"])
def test_a_webhook_that_is_no_address_is_refused_without_repeating_it(watched: WatchedLake, address: str) -> None:
    watched.configure(f"webhook: {address}\n")
    code, _, err = watched("tables")
    assert code == 2
    assert address not in err


def test_what_log_says_ends_with_the_command(watched: WatchedLake) -> None:
    from firnline.settings import log_form

    assert watched("--log", "json", "tables")[0] == 0
    assert log_form() == "text"


def test_a_full_disk_under_stderr_stops_no_run(watched: WatchedLake) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no device that is always full")
    with full.open("w") as stderr:
        ended = command(
            "expire", watched.world.table, "--grace", "0s", "--yes", "--json", stderr=stderr, FIRNLINE_LOG="json"
        )
    assert json.loads(ended.stdout)["state"] == "done"
    watched.world.check()
