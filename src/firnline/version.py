"""Which firnline this is, for code that must not import the whole of it."""

from __future__ import annotations

VERSION = "0.1.0"
