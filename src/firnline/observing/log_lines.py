"""News as JSON, one line each on stderr, for programs that gather logs."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, TextIO

from firnline.foreign import ascii_json, concealed, harmless_json
from firnline.model.times import format_instant
from firnline.ports.observing.news import News


def line_of(facts: dict[str, Any]) -> str:
    """Returns JSON in one line, without anything that a terminal would obey."""
    return ascii_json(harmless_json(json.dumps(facts, ensure_ascii=False))) + "\n"


class LogLines:
    """Writes a line for each piece of news. To be given to an Outlet: a pipe that nobody reads blocks."""

    def __init__(self, target: TextIO | None = None) -> None:
        self._target = target

    def deliver(self, news: News, dropped: int) -> None:
        level = "info" if news.error is None else "error"
        said = {"level": level, "event": "run", **news.to_json()}
        self._write({**said, "dropped": dropped} if dropped else said)

    def _write(self, facts: dict[str, Any]) -> None:
        target = self._target or sys.stderr
        target.write(line_of(facts))
        target.flush()


class JsonFormatter(logging.Formatter):
    """Writes what other parts of firnline log in the same form."""

    def format(self, record: logging.LogRecord) -> str:
        at = format_instant(int(record.created * 1000))
        said = {"level": record.levelname.lower(), "event": "log", "at": at, "message": concealed(record.getMessage())}
        if record.exc_info:
            said["trace"] = concealed(self.formatException(record.exc_info))
        return line_of(said).rstrip("\n")


def log_as_json() -> None:
    """Makes every line that firnline logs one of JSON. Once is enough: a second call changes nothing."""
    logger = logging.getLogger("firnline")
    if not any(isinstance(each.formatter, JsonFormatter) for each in logger.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logger.addHandler(handler)
        logger.propagate = False
