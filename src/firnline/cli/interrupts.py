"""Ctrl-C: the first asks the run to stop at its next batch boundary, the second stops at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType


def stop_on_interrupt() -> Callable[[], bool]:
    """Returns a question: has somebody asked to stop? Either way the run is left so that it can go on."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        print("\nstopping at the next batch; once more stops at once", file=sys.stderr)

    signal.signal(signal.SIGINT, ask)
    return lambda: bool(asked)
