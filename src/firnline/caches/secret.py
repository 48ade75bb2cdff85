"""The secret that entries are sealed with: never in the cache, never shown."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from firnline.errors import UsageError

_FEWEST_CHARACTERS = 16


def shared_secret(text: str, variable: str) -> bytes:
    """Returns the secret that machines share, another one for each variable that it comes from. Raises UsageError where
    it can be guessed too easily.
    """
    if len(text) < _FEWEST_CHARACTERS:
        raise UsageError(
            f"{variable} is too short: it needs {_FEWEST_CHARACTERS} characters",
            hint="such as the output of `openssl rand -hex 32`, the same on every machine",
        )
    return sha256(f"{variable}\n{text}".encode()).digest()


def own_secret(path: Path, *, make: bool = True) -> bytes | None:
    """Returns this user's secret, made on first use; None where it cannot be kept, or others may read or write it."""
    try:
        if make and not path.exists():
            _make(path)
        found = path.stat()
        if found.st_mode & 0o077 or found.st_uid != os.geteuid():
            return None
        return sha256(path.read_bytes()).digest() if found.st_size else None
    except OSError:
        return None


def _make(path: Path) -> None:
    """Writes a new secret beside its name and links it there: of two processes one wins, and both read its secret."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    with suppress(FileExistsError):
        os.link(unfinished, path)
    unfinished.unlink()
