"""Spans, as a collector receives them over HTTP."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time

import pytest

from firnline.observing.outlet import Outlet, close_all
from firnline.observing.spans import StageSpans, spans_wanted
from firnline.ports.observing.news import News
from observing.conftest import WatchedLake, command
from observing.test_observers import collector, silence

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("opentelemetry") is None, reason="the extra `traces` is not installed"
)


def spans_in(bodies: list[bytes]) -> list[tuple[bytes, str, int, dict[str, object]]]:
    """Returns trace, name, status and attributes of each span."""
    import gzip

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = []
    for body in bodies:
        request = ExportTraceServiceRequest()
        request.ParseFromString(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
        for scope in (each for resource in request.resource_spans for each in resource.scope_spans):
            for span in scope.spans:
                said = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
                found.append((span.trace_id, span.name, span.status.code, said))
    return found


@needs_library
def test_a_command_sends_a_span_of_each_stage_and_a_second_one_adds_to_the_same_trace(watched: WatchedLake) -> None:
    watched.configure("")
    with collector([200]) as (address, heard):
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        ended = command("expire", watched.world.table, "--grace", "1s", "--yes", "--json", **environment)
        assert ended.returncode == 0, ended.stderr
        time.sleep(1.2)
        again = command("purge", watched.world.table, "--json", **environment)
        assert again.returncode == 0, again.stderr
    assert {path for path, _ in heard} == {"/v1/traces"}
    spans = spans_in([body for _, body in heard])
    assert [name for _, name, _, _ in spans] == [
        f"firnline.{stage}" for stage in ("plan", "planned", "committing", "committed", "purging")
    ]
    assert len({trace for trace, _, _, _ in spans}) == 1
    assert spans[-1][3]["firnline.to"] == "done"
    assert spans[-1][3]["firnline.table"] == watched.world.table
    assert spans[-1][3]["firnline.deleted_files"] > 0


@needs_library
def test_a_failure_is_an_error_of_its_span() -> None:
    with collector([200]) as (address, heard), pytest.MonkeyPatch.context() as patched:
        patched.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        spans = StageSpans()
        spans.deliver(News("t@1", "t", "expiry", "purging", "purging", 1_000, error="deletes-failed"), 0)
        spans.finish()
    ((_, _, status, said),) = spans_in([body for _, body in heard])
    assert (status, said["firnline.error"]) == (2, "deletes-failed")


@needs_library
def test_a_collector_that_hangs_keeps_no_process() -> None:
    with silence() as address, pytest.MonkeyPatch.context() as patched:
        patched.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        spans = StageSpans()
        outlet = Outlet(spans.deliver, finish=spans.finish)
        outlet.hear(News("t@1", "t", "expiry", None, "planned", 1_000))
        outlet.close(30)  # the library is loaded by now
        began = time.monotonic()
        close_all([outlet], within_s=0.5)
        assert time.monotonic() - began < 3


def test_nothing_is_loaded_or_sent_where_no_collector_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert not spans_wanted()
    looks = "import sys; from firnline.lake import open_lake; open_lake(); print('opentelemetry' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


def test_a_collector_without_the_library_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("firnline.observing.spans.find_spec", lambda name: None)
    assert not spans_wanted()
    assert "pip install 'firnline[traces]'" in caplog.text
