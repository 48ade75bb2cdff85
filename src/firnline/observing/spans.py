"""News as spans of OpenTelemetry: one for each stage of a run, all of one run in one trace.

Needs `pip install 'firnline[traces]'`; where to is said by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT).
"""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from firnline.foreign import concealed
from firnline.ports.observing.news import News

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NANOSECONDS = 1_000_000


def spans_wanted() -> bool:
    """Tells whether a collector is configured and the library for it is there; says it where only the first is so."""
    if (
        not any(os.environ.get(each) for each in _VARIABLES)
        or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    ):
        return False
    is_here = find_spec("opentelemetry") is not None and find_spec("opentelemetry.exporter") is not None
    if not is_here:
        logging.getLogger("firnline").warning("no spans are sent: pip install 'firnline[traces]'")
    return is_here


class StageSpans:
    """Makes a span of each piece of news. To be given to an Outlet: the library takes a moment to load."""

    def __init__(self) -> None:
        self._provider: TracerProvider | None = None

    def deliver(self, news: News, dropped: int) -> None:
        from opentelemetry.trace import Status, StatusCode

        provider = self._provider = self._provider or _provider()
        end_ns = news.at_ms * _NANOSECONDS
        span = provider.get_tracer("firnline").start_span(
            f"firnline.{news.after or 'plan'}",
            context=_of_run(news.run),
            start_time=end_ns - (news.took_ms or 0) * _NANOSECONDS,
            attributes=_attributes(news),
        )
        if news.error is not None:
            span.set_status(Status(StatusCode.ERROR, news.error))
        span.end(end_ns)

    def finish(self) -> None:
        """Sends what was not sent yet."""
        if self._provider is not None:
            self._provider.shutdown()


def _provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    _conceal_addresses()
    # Resource.create would ask for more, on threads that cannot be started any more while a program ends.
    resource = Resource({"service.name": "firnline"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _of_run(run: str) -> Any:
    """Returns the trace that every process makes for a run: by its name, so that no process must hand it on."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    digest = sha256(run.encode("utf-8", "backslashreplace")).digest()
    trace, span = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big")
    parent = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(parent))


def _attributes(news: News) -> dict[str, str | int]:
    said = news.to_json()
    named = {f"firnline.{name}": said[name] for name in ("run", "table", "kind", "from", "to", "error", "plan")}
    words = {f"firnline.{name}": text for name, text in said["words"].items()}
    figures = {f"firnline.{name}": count for name, count in said["figures"].items()}
    return {name: value for name, value in {**named, **words, **figures}.items() if value is not None}


class _Concealing(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return concealed(super().format(record))


def _conceal_addresses() -> None:
    """The library logs the address of a collector that does not answer, password and all. A program with a log of its
    own decides about that itself.
    """
    logger = logging.getLogger("opentelemetry")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Concealing("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
