"""Where PyIceberg's configuration is found, in whichever process a relation is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_home(home: str | None) -> Iterator[None]:
    """Lets PyIceberg's configuration be found in a folder: a worker has the environment of the JVM's start."""
    before = os.environ.get("PYICEBERG_HOME")
    if home:
        os.environ["PYICEBERG_HOME"] = home
    try:
        yield
    finally:
        if home and before is None:
            del os.environ["PYICEBERG_HOME"]
        elif home and before is not None:
            os.environ["PYICEBERG_HOME"] = before
