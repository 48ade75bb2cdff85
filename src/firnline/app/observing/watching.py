"""Everyone who hears of runs, as the configuration and the environment say."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING

from firnline.ports.observing.watch import Watch, no_witness
from firnline.settings import JSON, log_form, webhook_setting

if TYPE_CHECKING:
    from firnline.app.observing.auditing import Auditing
    from firnline.observing.outlet import Outlet
    from firnline.policy.parse import Section

CLOSING_S = 5.0
"""How long a process that ends waits for news that are still to be told."""


def watch_of(config: Section, auditing: Auditing) -> Watch:
    """Returns who hears of the runs of this process. Raises UsageError where a setting makes no sense."""
    outlets = [*_log_lines(), *_webhook(config), *_spans()]
    if outlets:
        atexit.register(close_all, outlets)
    return Watch(auditing.witness() or no_witness, tuple(outlets))


def _log_lines() -> Iterator[Outlet]:
    if log_form() == JSON:
        from firnline.observing.log_lines import LogLines, log_as_json
        from firnline.observing.outlet import Outlet

        log_as_json()
        yield Outlet(LogLines().deliver)


def _webhook(config: Section) -> Iterator[Outlet]:
    address = webhook_setting(config)
    if address is not None:
        from firnline.observing.outlet import Outlet
        from firnline.observing.webhook import Webhook

        yield Outlet(Webhook(address).deliver)


def _spans() -> Iterator[Outlet]:
    if any(name.startswith("OTEL_EXPORTER_OTLP_") for name in os.environ):
        from firnline.observing.outlet import Outlet
        from firnline.observing.spans import Spans, spans_wanted

        if spans_wanted():
            spans = Spans()
            yield Outlet(spans.deliver, finish=spans.finish)


def close_all(outlets: list[Outlet], within_s: float = CLOSING_S) -> None:
    """Waits until all was told, or for so long: one that hangs does not keep the process."""
    until = time.monotonic() + within_s
    for outlet in outlets:
        outlet.close(max(0.0, until - time.monotonic()))
    last = [Thread(target=outlet.finish, daemon=True) for outlet in outlets]
    for thread in last:
        thread.start()
    for thread in last:
        thread.join(max(0.0, until - time.monotonic()))
