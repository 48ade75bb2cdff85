"""Names and seals of entries: what makes a lying cache as good as an empty one."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

_MARK = b"F1"
_SEAL_BYTES = 32
_OVERHEAD = len(_MARK) + _SEAL_BYTES


def entry_name(parts: Iterable[str | bytes | int | None]) -> str:
    """Returns one name for all the parts together; lists of parts that differ anywhere have different names."""
    said = [repr(part).encode("utf-8", "backslashreplace") for part in parts]
    return sha256(b"".join(len(each).to_bytes(8, "big") + each for each in said)).hexdigest()


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
        seal = hmac.new(self.secret, _MARK + sha256(name.encode()).digest(), "sha256")
        seal.update(payload)
        return seal.digest()
