"""Everyone who hears of runs, as the configuration and the environment say."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from threading import Lock
from typing import TYPE_CHECKING

from firnline.settings import JSON, log_form, webhook_setting

if TYPE_CHECKING:
    from firnline.app.observing.auditing import Auditing
    from firnline.observing.outlet import Outlet
    from firnline.policy.parse import Section
    from firnline.ports.observing.watch import RunWatch

_open: list[Outlet] = []
_closing: list[Outlet] = []
_lost: list[int] = []
_counting = Lock()


def watch_of(config: Section, auditing: Auditing) -> RunWatch:
    """Returns who hears of the runs of this process. Raises UsageError where a setting makes no sense."""
    from firnline.ports.observing.watch import RunWatch, no_witness

    outlets = [*_log_lines(), *_webhook(config), *_spans()]
    if outlets:
        _open.extend(outlets)
    return RunWatch(auditing.witness() or no_witness, tuple(outlets))


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
        from firnline.observing.spans import StageSpans, spans_wanted

        if spans_wanted():
            spans = StageSpans()
            yield Outlet(spans.deliver, finish=spans.finish)


def end_watch() -> None:
    """Waits a moment until all news were told that this process heard of so far. To be called before a program ends:
    once Python shuts down, libraries can start no thread any more.
    """
    if _open:
        from firnline.observing.outlet import close_all

        with _counting:
            ended = list(_open)
            _open.clear()
            _closing.extend(ended)
        close_all(ended)
        with _counting:
            _lost.extend(each.dropped for each in ended if each.dropped)
            _closing[:] = [each for each in _closing if each not in ended]


def dropped_news() -> int:
    """Returns how many pieces of news found no room since this process began, in whatever was open."""
    with _counting:
        return sum(_lost) + sum(each.dropped for each in (*_open, *_closing))


atexit.register(end_watch)  # for programs that use firnline as a library
