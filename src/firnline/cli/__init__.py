"""The command line: data on stdout, everything else on stderr."""

import gc
import sys

if sys.argv[0].rpartition("/")[2] == "firnline":
    # What a command makes while its parts are loaded are classes and functions, and all of them stay. To look through
    # them again and again for what nobody holds takes a tenth of a small plan.
    gc.set_threshold(200_000)  # twice as many as a small plan makes

from firnline.cli.main import main

__all__ = ["main"]
