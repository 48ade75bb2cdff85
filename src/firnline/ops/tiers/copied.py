"""What was copied, with its checksums: noted on disk, so that memory does not grow with the files, and looked at once
more before the tier's table names them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

from firnline.model.files import Tally
from firnline.ports.copying import CopyFate, CopyOutcome, Stored
from firnline.ports.packing import BundleOutcome


class CopiedFiles:
    """The copies of one hand-over, and their sums: what was written, and what lay there already."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.copied = Tally()
        self.present = Tally()

    def add(self, outcomes: Iterable[CopyOutcome]) -> None:
        """Notes copies that succeeded."""
        for each in outcomes:
            self._file.write(json.dumps([each.target, each.size, each.checksum]) + "\n")
            size = Tally(1, each.size)
            if each.fate is CopyFate.COPIED:
                self.copied += size
            else:
                self.present += size

    def add_bundle(self, bundle: BundleOutcome) -> None:
        """Counts what a bundle holds that was written. The bundle itself is looked at with all that hold the rest."""
        self.copied += Tally(len(bundle.packed), sum(each.size for each in bundle.packed))

    def stored(self) -> Iterator[Stored]:
        """Yields all copies as they were seen to be."""
        self._file.flush()
        self._file.seek(0)
        return (Stored(*json.loads(line)) for line in self._file)


@contextmanager
def copied_files() -> Iterator[CopiedFiles]:
    """Hands out a list, empty as yet, that is gone after the block."""
    with TemporaryFile("w+", encoding="utf-8") as file:
        yield CopiedFiles(file)
