"""What a JVM of ours says while it starts: hidden, unless it fails."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread

from firnline.foreign import harmless


@contextmanager
def unheard() -> Iterator[None]:
    """Hides what a JVM says by itself while it starts: that incubating modules are used, that native code is not. If it
    does not start, all of that is shown, for it says why; what it and its Python workers say later is shown at once.
    """
    from pyspark import java_gateway

    plain, words = getattr(java_gateway, "Popen"), FirstWords()  # noqa: B009
    setattr(java_gateway, "Popen", partial(plain, stderr=words.inlet))  # noqa: B010  (Spark has no way to say it)
    started = False
    try:
        yield
        started = True
    finally:
        setattr(java_gateway, "Popen", plain)  # noqa: B010
        words.let_through(all_of_it=not started)


_MOST = 500
"""Lines that are kept of a start. What says why it failed comes last."""


class FirstWords:
    """A pipe for a process that is about to start. `inlet` is its end of it."""

    def __init__(self) -> None:
        outlet, self.inlet = os.pipe()
        self._outlet = os.fdopen(outlet, errors="replace")
        self._kept: deque[str] = deque(maxlen=_MOST)
        self._heard = Event()
        self._listening = Thread(target=self._listen, name="first-words", daemon=True)
        self._listening.start()

    def let_through(self, *, all_of_it: bool) -> None:
        """Shows each line from now on, and first what was kept if `all_of_it` is wanted. This process gives up its own
        end of the pipe: with it, the reading would not end with the other process.
        """
        os.close(self.inlet)
        if all_of_it:
            self._listening.join(timeout=1)  # one that failed to start has mostly ended
            for line in list(self._kept):
                print(harmless(line), file=sys.stderr)
        self._heard.set()

    def _listen(self) -> None:
        for line in self._outlet:
            if self._heard.is_set():
                print(harmless(line.rstrip("\n")), file=sys.stderr, flush=True)
            else:
                self._kept.append(line.rstrip("\n"))
