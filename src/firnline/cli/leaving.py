"""How the process of a command ends: when everybody's last words are said, without taking the interpreter apart.

1. Arrow reads a buffer that Python owns on threads of its own, and the command has its answer.
2. One of those threads still holds the buffer, and lets go of it while Python is being taken apart.
3. To free it the thread needs Python, which ends every thread that asks by then. C++ cannot be ended like that: the
   process aborts with `terminate called without an active exception`, after all was done and said.

Such threads cannot be joined from here. So the process ends before the second step, by its own exit code.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

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


def _leave() -> None:
    if _codes:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_codes[-1])
