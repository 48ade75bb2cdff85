"""Where PyIceberg's configuration is found, in whichever process a relation is opened."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from firnline.catalogs.config import written_catalogs
from firnline.settings import NAME, find_config

_FILE = ".pyiceberg.yaml"


def usual_options(config: str | None) -> dict[str, str]:
    """Returns the options that name the configuration which this process goes by, whole paths each."""
    here, file = os.environ.get("PYICEBERG_HOME"), find_config(config)
    home = here or (os.getcwd() if Path(_FILE).is_file() else None)
    found = {"home": home and os.path.abspath(home), "config": None if file is None else str(file.absolute())}
    return {name: value for name, value in found.items() if value}


def carried_options(config: str | None) -> dict[str, str]:
    """Returns the options that hold the configuration itself: the files of another machine are none of ours. There are
    credentials in it, so it travels inside the data source, where no page of Spark shows it.
    """
    file = find_config(config)
    policy = "" if file is None else file.read_text()
    return {"home": json.dumps({"catalog": written_catalogs(), "policy": policy})}


@contextmanager
def at_home(home: str | None, config: str | None) -> Iterator[str | None]:
    """Lets PyIceberg's configuration be found in a folder: a worker has the environment of the JVM's start. Yields the
    file that firnline goes by. Where the configuration itself was sent, both are written down for that time.
    """
    with ExitStack() as until_then:
        if home and home.startswith("{"):
            folder = until_then.enter_context(TemporaryDirectory(prefix="firnline-home-"))
            home, config = _written_down(json.loads(home), Path(folder))
        until_then.enter_context(_found_in(home))
        yield config


def _written_down(sent: Mapping[str, Any], folder: Path) -> tuple[str, str]:
    """Returns the folder, which only this user can read, and the file for firnline in it."""
    import yaml

    if sent["catalog"]:  # PyIceberg takes blocks alone, in which nothing is empty
        (folder / _FILE).write_text(yaml.safe_dump({"catalog": sent["catalog"]}, default_flow_style=False))
    (folder / NAME).write_text(sent["policy"])
    return str(folder), str(folder / NAME)


@contextmanager
def _found_in(home: str | None) -> Iterator[None]:
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
