"""Files and folders of this user's own: where they lie, made and taken for such by owner and mode.

What is loaded as code, or sent to executors as code, runs with this user's rights. Anyone who may write to it, or to
the folder that it lies in, could run what they like.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_NOWHERE = Path(os.devnull)
"""Where the folders of a user without a home lie: nothing is ever found there, and nothing can be made."""


def own_cache(sort: str) -> Path:
    """Returns a folder of the user's cache, which need not be there."""
    from platformdirs import user_cache_path

    with suppress(RuntimeError):  # no home, and no variable that names a folder
        return user_cache_path("firnline", appauthor=False) / sort
    return _NOWHERE / sort


def own_config() -> Path:
    """Returns the folder of the user's configuration, which need not be there."""
    from platformdirs import user_config_path

    with suppress(RuntimeError):
        return user_config_path("firnline", appauthor=False)
    return _NOWHERE / "config"


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_HALF = ".half-"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_own_folder(folder: Path, owners: Set[int] | None = None) -> bool:
    """Tells whether it is a folder, and no link to one, of this user (or of one of these) that no other may write to.

    Raises OSError where it is not there.
    """
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and is_own(found, owners)


def read_own(path: Path, owners: Set[int] | None = None) -> bytes | None:
    """Returns the bytes of a plain file of this user (or of one of these) that no other may write to; None for any
    other file. Raises OSError where there is none.
    """
    with open(os.open(path, _FLAGS), "rb") as file:
        found = os.fstat(file.fileno())
        return file.read() if stat.S_ISREG(found.st_mode) and is_own(found, owners) else None


def half_of(path: Path) -> Path:
    """Returns a new name beside the path, for what is not whole yet."""
    return path.with_name(f"{_HALF}{uuid4().hex}")


def is_half(name: str) -> bool:
    return name.startswith(_HALF) and len(name) == len(_HALF) + 32


def create(path: Path, mode: int) -> int:
    """Returns a new file, open for writing, with just this mode whatever the umask. Raises FileExistsError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    os.fchmod(handle, mode)
    return handle


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Writes a file under its name only when all of it is there. Raises OSError, and then leaves nothing behind."""
    half = half_of(path)
    try:
        with open(create(half, mode), "wb") as file:
            file.write(data)
        half.replace(path)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise


def is_own(found: os.stat_result, owners: Set[int] | None = None) -> bool:
    """Tells whether what was found is this user's (or one of these users'), and no other may write to it."""
    return found.st_uid in (owners or {os.geteuid()}) and not found.st_mode & _OTHERS_WRITE
