"""The command line: data on stdout, everything else on stderr."""

import gc
import signal
import sys

if sys.argv[0].rpartition("/")[2] == "firnline":
    # What a command makes while its parts are loaded are classes and functions, and all of them stay. To look through
    # them again and again for what nobody holds takes a tenth of a small plan.
    gc.set_threshold(200_000)  # twice as many as a small plan makes
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # 1. The command is started, and imports all of its parts: a quarter of a second.
        # 2. The operator presses Ctrl-C. Whichever import is under way ends in a traceback that tells nothing.
        # Nothing was begun, so the signal may end the process by itself; `main` listens again.
        # One that is ignored stays so.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

from firnline.cli.main import main

__all__ = ["main"]
