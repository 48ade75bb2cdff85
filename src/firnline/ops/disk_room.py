"""What is written to a disk of this machine, which may be full, gone or another user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.errors import UsageError


@contextmanager
def writing_to(place: str | Path, hint: str) -> Iterator[None]:
    """Raises UsageError, which names the place, if the disk refuses what the block writes there."""
    try:
        yield
    except OSError as refusal:
        where = refusal.filename or place
        raise UsageError(f"cannot write to {where}: {refusal.strerror or refusal}", hint=hint) from refusal
