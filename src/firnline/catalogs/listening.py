"""Connections to PostgreSQL that give up a server that keeps silent: its client library waits for ever.

Only silence ends one, of the socket that is waited for. A long listing is heard with each piece of its rows, and a
limit that the server keeps, such as `statement_timeout`, does not help where the server hangs.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy import event

from firnline import answering

Result = TypeVar("Result")


@dataclass
class _Silence:
    """How long a server may be silent that one side of a catalog reaches, and until when it is known to be."""

    what: str
    within_s: float
    silent_until_s: float = 0.0

    def refuse(self) -> None:
        """Raises OperationalError where the server was found silent a moment ago: many tables may lie behind it."""
        if time.monotonic() < self.silent_until_s:
            raise self._error()

    def given_up(self) -> psycopg.OperationalError:
        """Returns the error for a server that is silent now."""
        self.silent_until_s = time.monotonic() + answering.IS_SILENT_FOR_S
        return self._error()

    def _error(self) -> psycopg.OperationalError:
        return psycopg.OperationalError(f"no answer within {self.within_s:g} s")


class Listening(psycopg.Connection[Any]):
    """A connection that is closed where its server keeps silent. If a commit was under way its outcome is unknown."""

    silence: _Silence

    def wait(self, gen: Generator[Any, Any, Result], *args: Any, **named: Any) -> Result:
        """Returns what a request ends with. Raises OperationalError where no word came for too long."""
        return super().wait(self._heard(gen), *args, **named)

    def _heard(self, request: Generator[Any, Any, Result]) -> Generator[Any, Any, Result]:
        """Runs a request, which is woken a few times a second also while nothing comes."""
        heard_s = time.monotonic()
        try:
            wanted = next(request)
            while True:
                ready = yield wanted
                if ready:
                    heard_s = time.monotonic()
                else:
                    self._bear(time.monotonic() - heard_s)
                wanted = request.send(ready)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]

    def _bear(self, silent_s: float) -> None:
        if silent_s >= self.silence.within_s:
            self.close()  # so that it goes back into no pool
            raise self.silence.given_up()
        if silent_s >= answering.IS_TOLD_AFTER_S:
            answering.tell(self.silence.what)


def listen(engine: sa.Engine, what: str, within_s: float) -> None:
    """Makes all connections of an engine listening ones."""
    silence = _Silence(what, within_s)

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, args: tuple[Any, ...], named: dict[str, Any]) -> Listening:
        silence.refuse()
        with answering.told(what):
            connection = Listening.connect(*args, **named)
        connection.silence = silence
        return connection
