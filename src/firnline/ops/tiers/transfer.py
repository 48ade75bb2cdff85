"""Copying all that some snapshots are made of from one store to another: each file after all that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any

from firnline.errors import Interrupted
from firnline.model.files import FileKind, Root, Tally
from firnline.model.snapshots import SnapshotId
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.bundling import Bundles
from firnline.ops.tiers.copied import CopiedFiles
from firnline.ops.tiers.incomplete import refuse_failed
from firnline.ops.tiers.rewriting import RewritingCopy
from firnline.ports.catalogs import Still
from firnline.ports.copying import Copy, CopyJob
from firnline.ports.engines import Engine, Survey, Territory
from firnline.ports.expanding import Expand
from firnline.ports.formats import State, TableFormat
from firnline.ports.packing import TransferMany
from firnline.ports.progress import Progress
from firnline.ports.relocating import Place, Relocate
from firnline.ports.stores import Get, ReadWrite

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Transfer:
    """From where to where files go, and how: `copy` copies byte for byte, `relocate` rewrites what names others, `many`
    returns who spreads so many copies over the engine. `to` is what the other place is called; `bundles` are those into
    which its leaf files go, None where each is an object.
    """

    source: Get
    target: ReadWrite
    place: Place
    copy: Copy
    relocate: Relocate
    many: Callable[[int], TransferMany]
    still: Still
    progress: Progress
    to: str
    bundles: Bundles | None = None

    def all_of(self, survey: Survey, files: CopiedFiles) -> None:
        """Copies every file that a walk reached, and notes it. Raises ArchiveIncomplete where one cannot be copied."""
        for kind in chain.from_iterable(self.relocate.order):
            self._of_kind(kind, survey, files)

    def _of_kind(self, kind: FileKind, survey: Survey, files: CopiedFiles) -> None:
        every, jobs = survey.kept.by_kind.get(kind, Tally()).files, self._jobs(survey.kept_batches((kind,)))
        if self.bundles is not None and kind in self.relocate.leaves:
            steps = self.bundles.add(kind, jobs, self.many(every), self.relocate, files, self.still)
        else:
            steps = self._copied(kind, jobs, every, files)
        for done in accumulate(steps):
            self.progress.step(f"copying {kind.value} to {self.to}", done, max(done, every))

    def _copied(self, kind: FileKind, jobs: Iterator[CopyJob], every: int, files: CopiedFiles) -> Iterator[int]:
        """Copies files of one kind, and yields how many of them at a time."""
        rewriting = RewritingCopy(self.source, self.target, self.relocate)
        copy = rewriting if kind in self.relocate.rewritten else self.copy
        many = self.many(every)
        while some := list(islice(jobs, many.rows)):
            self.still()
            outcomes = many.copy_many(some, copy, self.still)
            refuse_failed(outcomes, self.to, "could not be copied")
            files.add(outcomes)
            yield len(some)

    def _jobs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[CopyJob]:
        for batch in batches:
            columns: Any = (batch.column(name).to_pylist() for name in ("key", "size", "kind"))
            for key, size, kind in zip(*columns, strict=True):
                yield CopyJob(key, self.place.place(key), size, kind)


def until_stopped(work: TableContext, still: Still) -> Still:
    """Returns what asks the same, and raises Interrupted where this process is to stop: copies may last for hours, and
    a run takes them up again where it left them.
    """

    def ask() -> None:
        if work.interrupted():
            raise Interrupted("stopped before all was copied", hint="`firnline resume` goes on")
        still()

    return ask


@contextmanager
def walked(
    work: TableContext,
    table_format: TableFormat,
    state: State,
    snapshots: Set[SnapshotId],
    expand: Expand | None = None,
) -> Iterator[tuple[Engine, Survey]]:
    """Hands out all that some snapshots of a table are made of, and the engine that walked it; units are opened by the
    format's own expand unless another is given.
    """
    engine = work.choose(state, table_format, "auto")
    starts = [Root(file, True, owner) for owner, file in table_format.roots(state) if owner in snapshots]
    with closing(engine.survey(starts, expand or table_format.expand, Territory(None))) as survey:
        yield engine, survey
