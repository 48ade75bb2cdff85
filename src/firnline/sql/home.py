"""Where PyIceberg's configuration is found, in whichever process a relation is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.settings import find_config

_FILE = ".pyiceberg.yaml"


def usual_options(config: str | None) -> dict[str, str]:
    """Returns the options that name the configuration which this process goes by, whole paths each."""
    here, file = os.environ.get("PYICEBERG_HOME"), find_config(config)
    home = here or (os.getcwd() if Path(_FILE).is_file() else None)
    found = {"home": home and os.path.abspath(home), "config": None if file is None else str(file.absolute())}
    return {name: value for name, value in found.items() if value}


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


def leave_gone_folder() -> None:
    """Leaves the current folder of a worker if it is gone: workers are where the JVM was started, perhaps long ago, and
    PyIceberg does not look for its configuration anywhere if that folder has no name any more.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir(os.sep)
