"""Names and seals of entries, and the secret they are sealed with: a lying cache is as good as an empty one."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
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


_SHELF_DIGITS = 32
_MARK = b"F1"
_SEAL_BYTES = 32
_OVERHEAD = len(_MARK) + _SEAL_BYTES


def entry_name(parts: Iterable[str | bytes | int | None]) -> str:
    """Returns one name for all the parts together; lists of parts that differ anywhere have different names."""
    return sha256(repr(tuple(parts)).encode("utf-8", "backslashreplace")).hexdigest()


def shelf_of(together: str) -> str:
    """Returns the shelf for entries that are asked for together, by what they have in common."""
    return sha256(together.encode("utf-8", "surrogatepass")).hexdigest()[:_SHELF_DIGITS]


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals what is given out to a cache with a secret that the cache does not have.

    The entry's name is under the seal: an entry of another unit, moved here, is as broken as a forged one.
    """

    secret: bytes = field(repr=False)

    def close(self, name: str, payload: bytes) -> bytes:
        """Returns the payload with its seal in front."""
        return _MARK + self._over(name, payload) + payload

    def open(self, name: str, sealed: bytes) -> memoryview | None:
        """Returns the payload that was sealed under this very name; None for anything else."""
        if len(sealed) < _OVERHEAD or not sealed.startswith(_MARK):
            return None
        payload = memoryview(sealed)[_OVERHEAD:]
        said = sealed[len(_MARK) : _OVERHEAD]
        return payload if hmac.compare_digest(said, self._over(name, payload)) else None

    def _over(self, name: str, payload: bytes | memoryview) -> bytes:
        # In one call: an object of Python's for each of a million seals costs more than to copy what it seals.
        return hmac.digest(self.secret, b"".join((_MARK, sha256(name.encode()).digest(), payload)), "sha256")
