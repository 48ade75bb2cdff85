"""Ctrl-C: plain until a purge begins; from then on the first asks it to stop at its next batch boundary."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType


def stop_on_interrupt() -> Callable[[], bool]:
    """Returns a question for the boundaries of batches: has somebody asked to stop?

    Asking it for the first time is what changes Ctrl-C: before that, nothing is under way that a boundary would
    protect, and whoever stops a plan or a prompt wants it to stop there.
    """
    asked: list[int] = []
    listening: list[bool] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        print("\nstopping at the next batch; once more stops at once", file=sys.stderr)

    def was_asked() -> bool:
        if not listening:
            listening.append(True)
            signal.signal(signal.SIGINT, ask)
        return bool(asked)

    return was_asked
