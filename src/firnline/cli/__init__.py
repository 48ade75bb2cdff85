"""The command line: data on stdout, everything else on stderr."""

from firnline.cli.main import main

__all__ = ["main"]
