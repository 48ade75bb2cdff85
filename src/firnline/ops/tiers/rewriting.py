"""Copies of the files that name other files: rewritten on the way, so that they name them where the tier has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from firnline.errors import AlreadyExists, FirnlineError
from firnline.model.files import FileKind
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import CopyFate, CopyJob, CopyOutcome
from firnline.ports.relocating import Relocate
from firnline.ports.stores import Get, ReadWrite, shared


@dataclass(frozen=True, slots=True)
class RewritingCopy:
    """Reads each file, rewrites it, writes it to the tier and reads it back. Picklable; a file is held whole."""

    source: Get
    target: ReadWrite
    relocate: Relocate

    def share(self, parts: int) -> RewritingCopy:
        return RewritingCopy(shared(self.source, parts), shared(self.target, parts), shared(self.relocate, parts))

    def copy(self, jobs: Sequence[CopyJob], still: Still = always) -> list[CopyOutcome]:
        return [self._copied(job, still) for job in jobs]

    def _copied(self, job: CopyJob, still: Still) -> CopyOutcome:
        try:
            data = self.source.get(job.source)
            if job.size is not None and len(data) != job.size:
                return _failed(job, f"{job.source} has {len(data)} bytes, its table says {job.size}")
            rewritten = self.relocate.relocated(FileKind(job.kind), job.source, data)
        except FirnlineError as problem:
            return _failed(job, problem.message)
        still()
        try:
            return self._written(job, rewritten)
        except FirnlineError as problem:
            return _failed(job, problem.message)

    def _written(self, job: CopyJob, data: bytes) -> CopyOutcome:
        """Returns what became of it. A file that lies there already was written by an earlier try, or for another
        snapshot: perhaps by a version whose compression gives other bytes for the same records.
        """
        try:
            self.target.put_if_absent(job.target, data)
            fate = CopyFate.COPIED
        except AlreadyExists:
            fate = CopyFate.PRESENT
        found = self.target.get(job.target)
        if found != data and not self.relocate.same(FileKind(job.kind), found, data):
            return _failed(job, f"{job.target} holds something else than {job.source}")
        return CopyOutcome(job.target, fate, len(found), f"sha256:{sha256(found).hexdigest()}")


def _failed(job: CopyJob, error: str) -> CopyOutcome:
    return CopyOutcome(job.target, CopyFate.FAILED, error=error)
