"""Where the files of a world lie, reached around firnline's own stores: as other writers and the judge see them. And
what one who is not root may see of a disk.
"""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from firnline.testing.dated import date


class Disk(Protocol):
    """Files by their location."""

    def read(self, location: str) -> bytes:
        """Returns the bytes. Raises FileNotFoundError."""

    def write(self, location: str, data: bytes, at_ms: int) -> None:
        """Writes a file as of that moment: other tools go by a file's age."""

    def remove(self, location: str) -> None:
        """Removes a file; one that is gone already is no failure."""

    def exists(self, location: str) -> bool: ...

    def modified_ms(self, location: str) -> int: ...

    def under(self, folder: str) -> Iterator[str]:
        """Yields the locations of all files in a folder and below."""


class LocalDisk:
    """Local files, located as `file://…`."""

    def read(self, location: str) -> bytes:
        return local(location).read_bytes()

    def write(self, location: str, data: bytes, at_ms: int) -> None:
        path = local(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        date(path, at_ms)

    def remove(self, location: str) -> None:
        local(location).unlink(missing_ok=True)

    def exists(self, location: str) -> bool:
        return local(location).exists()

    def modified_ms(self, location: str) -> int:
        return round(local(location).stat().st_mtime * 1000)

    def under(self, folder: str) -> Iterator[str]:
        return (f"file://{path}" for path in local(folder).rglob("*") if path.is_file())


@dataclass
class BucketDisk:
    """Objects of an S3 server, by a boto3 client. A server dates objects itself, so their dates are noted here."""

    client: Any
    _dated: dict[str, int] = field(default_factory=dict)

    def read(self, location: str) -> bytes:
        bucket, key = _address(location)
        try:
            return bytes(self.client.get_object(Bucket=bucket, Key=key)["Body"].read())
        except self.client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(location) from error

    def write(self, location: str, data: bytes, at_ms: int) -> None:
        bucket, key = _address(location)
        self.client.put_object(Bucket=bucket, Key=key, Body=data)
        self._dated[location] = at_ms

    def remove(self, location: str) -> None:
        bucket, key = _address(location)
        self.client.delete_object(Bucket=bucket, Key=key)

    def exists(self, location: str) -> bool:
        bucket, key = _address(location)
        found = self.client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents", [])
        return any(each["Key"] == key for each in found)

    def modified_ms(self, location: str) -> int:
        """Returns the noted date; what firnline or a server wrote has its own."""
        bucket, key = _address(location)
        if location not in self._dated:
            head = self.client.head_object(Bucket=bucket, Key=key)
            self._dated[location] = round(head["LastModified"].timestamp() * 1000)
        return self._dated[location]

    def under(self, folder: str) -> Iterator[str]:
        bucket, prefix = _address(folder.rstrip("/") + "/")
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for each in page.get("Contents", []):
                yield f"s3://{bucket}/{each['Key']}"


def local(location: str) -> Path:
    """Returns the path of a local file."""
    return Path(location.removeprefix("file://"))


def _address(location: str) -> tuple[str, str]:
    bucket, _, key = location.removeprefix("s3://").partition("/")
    return bucket, key


_CAPABILITIES = 0x20080522
_OVER_FILES = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32 * 3) for name in ("low", "high")]


@contextmanager
def as_a_user() -> Iterator[None]:
    """Works without the power of root over files: what the mode of a folder or a file forbids its owner is refused, in
    this thread and in those that it starts. A test that root runs is refused what another's would be.
    """
    libc, had = ctypes.CDLL(None, use_errno=True), _Sets()
    if libc.capget(ctypes.byref(_Header(_CAPABILITIES)), ctypes.byref(had)):
        raise OSError(ctypes.get_errno(), "capget")
    low = (had.low[0] & ~_OVER_FILES, had.low[1], had.low[2])
    _set(libc, _Sets((ctypes.c_uint32 * 3)(*low), had.high))
    try:
        yield
    finally:
        _set(libc, had)


def _set(libc: ctypes.CDLL, sets: _Sets) -> None:
    if libc.capset(ctypes.byref(_Header(_CAPABILITIES)), ctypes.byref(sets)):
        raise OSError(ctypes.get_errno(), "capset")


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Lets every write fail that makes a file larger, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
