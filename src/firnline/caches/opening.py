"""From a setting to a cache: off, disk, a folder, or Redis."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firnline.caches.disk import DiskCache
from firnline.caches.expand import CachedExpand, Stamps, look_up
from firnline.caches.seal import Seal, entry_name, own_secret, shared_secret, shelf_of
from firnline.errors import UsageError
from firnline.extras import require
from firnline.foreign import is_address
from firnline.model.files import File
from firnline.ports.abilities import UnitsElsewhere
from firnline.ports.cache import CACHE_KEY, REDIS, Cache, Nothing, Remember, Sealed
from firnline.ports.expanding import Expand
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import List

OFF, DISK = "off", "disk"
OWN = "firnline-units"
"""The folder for entries in one that is named: what else lies there is not a cache."""

ALLOWED = "off, disk, a folder, or redis://HOST:PORT/DATABASE"
_SHORTEST_S, _LONGEST_S = 3_600, 30 * 86_400
_NO_KEY = f"it needs {CACHE_KEY}, the same on every machine: anyone who reaches Redis could forge entries"


@dataclass(frozen=True, slots=True)
class OpenedCache:
    """A cache and the seal that makes it safe. `place` is for people; `trouble` says why there is none."""

    place: str
    cache: Cache | None = None
    seal: Seal | None = None
    trouble: str = ""

    def answers(self) -> bool | None:
        """Tells whether an entry that is put is there afterwards; None where there is no cache to ask."""
        if self.cache is None:
            return None
        name, said = entry_name(("firnline", secrets.token_hex(8))), secrets.token_bytes(16)
        self.cache.put(shelf_of(name), [(name, said)], 60)
        return self.cache.get(shelf_of(name), [name]) == [said]

    def prune(self) -> None:
        """Lets a cache on this machine's disk make room; one on a server forgets by itself."""
        if isinstance(self.cache, DiskCache):
            with suppress(OSError):
                self.cache.prune()

    def sealed(self) -> Sealed:
        """Returns the cache for bytes of any kind, each under the seal."""
        return Nothing() if self.cache is None or self.seal is None else SealedCache(self.cache, self.seal)

    def of(self, store: List) -> Remember:
        """Returns what makes a format's expand remember, for tables in this store."""

        def remember(table_format: TableFormat, state: State, window_ms: int) -> Expand:
            if self.cache is None:
                return table_format.expand
            stamps = stamps_of(store, table_format, state, (file for _, file in table_format.roots(state)))
            return self.remembering(table_format, stamps, window_ms)

        return remember

    def remembering(self, table_format: TableFormat, stamps: Stamps, window_ms: int) -> Expand:
        """Returns the format's expand, and where there is a cache one that remembers what it opens for so long."""
        if self.cache is None or self.seal is None:
            return table_format.expand
        ttl_s = min(max(window_ms // 1000, _SHORTEST_S), _LONGEST_S)
        return CachedExpand(table_format.expand, table_format.name, self.cache, self.seal, stamps, ttl_s)


def stamps_of(store: List, table_format: TableFormat, state: State, units: Iterable[File]) -> Stamps:
    """Returns stamps for what lies beside these units, and in the folders in which the format says that others do."""
    also = table_format.unit_folders(state) if isinstance(table_format, UnitsElsewhere) else ()
    return look_up(store, units, also)


@dataclass(frozen=True, slots=True)
class SealedCache:
    """A cache whose entries are as good as this user's own: what is not under the seal is not there."""

    cache: Cache
    seal: Seal

    def get(self, parts: Sequence[str | int]) -> bytes | None:
        name = entry_name(parts)
        (said,) = self.cache.get(shelf_of(name), [name])
        payload = None if said is None else self.seal.open(name, said)
        return None if payload is None else bytes(payload)

    def put(self, parts: Sequence[str | int], data: bytes) -> None:
        name = entry_name(parts)
        self.cache.put(shelf_of(name), [(name, self.seal.close(name, data))], _LONGEST_S)


def open_memory(setting: str, key: str | None, key_file: Path, folder: Path) -> OpenedCache:
    """Returns the cache that a setting names; nothing is connected or made yet, except the user's own secret.

    Raises UsageError where the setting means nothing, or the shared key could be guessed.
    """
    if setting == OFF:
        return OpenedCache(OFF)
    secret = own_secret(key_file) if key is None else shared_secret(key, CACHE_KEY)
    if setting.startswith(REDIS):
        if not is_address(setting, "redis", "rediss"):
            raise UsageError("the address of the cache is not that of a Redis", hint=ALLOWED)
        if key is None:
            return OpenedCache(shown(setting), trouble=_NO_KEY)
        require("redis", "a cache in Redis")
        from firnline.caches.redis_cache import RedisCache

        return OpenedCache(shown(setting), RedisCache(setting), Seal(shared_secret(key, CACHE_KEY)))
    if "://" in setting:
        raise UsageError(f"no cache for {setting.partition('://')[0]}:// is known", hint=ALLOWED)
    place = str(folder) if setting == DISK else os.path.join(os.path.abspath(os.path.expanduser(setting)), OWN)
    if secret is None:
        return OpenedCache(place, trouble=f"no secret: {key_file} cannot be made, or others than its owner may read it")
    return OpenedCache(place, DiskCache(place), Seal(secret))


def shown(url: str) -> str:
    """Returns an address for people to read: nobody's name, password or options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
