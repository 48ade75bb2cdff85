"""The process of a command: what it spares itself, what Ctrl-C does, and how it ends.

pyarrow looks for pandas at the first array it makes, and that takes a second. Linear algebra for numpy starts threads
that wait for work by spinning. And the C library gives memory back only to get it again.

1. Arrow reads a buffer that Python owns on threads of its own, and the command has its answer.
2. One of those threads still holds the buffer, and lets go of it while Python is being taken apart.
3. To free it the thread needs Python, which ends every thread that asks by then. C++ cannot be ended like that: the
   process aborts with `terminate called without an active exception`, after all was done and said.

Such threads cannot be joined from here. So the process ends before the second step, by its own exit code.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType, ModuleType

from firnline.cli.terminal.progress import clean_line
from firnline.memory import keep_freed_memory


def stop_on_interrupt() -> Callable[[], bool]:
    """Returns a question for the boundaries of batches: has the operator asked to stop?

    Asking it for the first time is what changes Ctrl-C: before that, nothing is under way that a boundary would
    protect, and who stops a plan or a prompt wants it to stop there.
    """
    asked: list[int] = []
    listening: list[bool] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        clean_line()
        print("\nstopping at the next batch; once more stops at once", file=sys.stderr)

    def was_asked() -> bool:
        if not listening:
            listening.append(True)
            signal.signal(signal.SIGINT, ask)
        return bool(asked)

    return was_asked


class _NoPandas:
    """Says that there is no pandas, until Spark is here: it does without pyarrow's part of it, but asks for its own.

    Only for our own process: a program that uses firnline as a library may well want pandas from pyarrow.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("firnline does not need it", name=name)


def listen_again() -> None:
    """Makes Ctrl-C an error of this process, which says what became of the command. While its parts were loaded the
    signal just ended it.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def settle_in() -> None:
    """Makes this process one that serves a single command."""
    without_pandas()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_freed_memory()


def without_pandas() -> None:
    if "pandas" not in sys.modules and not any(isinstance(each, _NoPandas) for each in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())


_codes: list[int] = []


def leave_whole() -> None:
    """Makes this process end without step 2, once `leaving` said its code. To be called before anything heavy is
    loaded: what is registered first runs last, after all that Spark and others still have to do.
    """
    atexit.register(_leave)


def leaving(code: int) -> int:
    """Returns the exit code, which from now on is the process's; an error that nobody caught still shows as one."""
    _codes.append(code)
    return code


def leave_at_once() -> None:
    """Ends this process, which `leave_whole` prepared, without what its threads still do.

    1. A table is read on a thread, and its server hangs. The operator presses Ctrl-C, and once more.
    2. Python would wait for the thread. To a thread that goes on it refuses others: that ends in a traceback.

    What a thread was about to write is as if the machine had stopped: records are made for that.
    """
    atexit._run_exitfuncs()  # all that was registered by others, then `_leave`


def _leave() -> None:
    if _codes:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # none where the shell closed it
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_codes[-1])
