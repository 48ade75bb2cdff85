"""The sizes of victims of which no metadata tells one: indexes beside data files, statistics.

Asked for one by one, and only of what goes: a plan says how many bytes come back, and its list the size of each file.
The list with its sizes waits on disk: in memory it would grow with the files, and to walk it a second time costs
what the first walk did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound
from firnline.model.files import FileKind, Tally, Totals
from firnline.ops.disk_room import writing_to
from firnline.ports.engines import Survey
from firnline.ports.stores import Head

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 16
_ROOM = "TMPDIR names a folder with room for the list of files"


@dataclass(frozen=True, slots=True)
class Measured:
    """A survey with the sizes that were asked for. `unsized` counts what is gone already, and still has none."""

    survey: Survey
    folder: TemporaryDirectory[str]
    victims: Totals
    unsized: int

    @property
    def kept(self) -> Totals:
        return self.survey.kept

    @property
    def spared(self) -> dict[str, Tally]:
        return self.survey.spared

    @property
    def units_opened(self) -> int:
        return self.survey.units_opened

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with pa.OSFile(str(_file(self.folder)), "rb") as source:
            yield from pa.ipc.open_stream(source)

    def kept_batches(self, kinds: Collection[FileKind] = tuple(FileKind)) -> Iterator[pa.RecordBatch]:
        return self.survey.kept_batches(kinds)

    def close(self) -> None:
        self.folder.cleanup()
        self.survey.close()


@dataclass(slots=True)
class _Sizes:
    """What the store told: bytes by kind, and how many files it does not have."""

    told: Counter[FileKind]
    missing: int = 0

    def filled(self, batch: pa.RecordBatch, store: Head, pool: ThreadPoolExecutor) -> pa.RecordBatch:
        """Returns the batch, in which every file that is there has a size."""
        import pyarrow as pa

        said = batch.column("size").to_pylist()
        asked = [row for row, size in enumerate(said) if size is None]
        keys, kinds = batch.column("key"), batch.column("kind")
        answers = pool.map(lambda row: size_of(store, keys[row].as_py()), asked)
        for row, size in zip(asked, answers, strict=True):
            said[row] = size
            self.missing += size is None
            self.told[FileKind(kinds[row].as_py())] += size or 0
        return batch.set_column(batch.schema.get_field_index("size"), "size", pa.array(said, pa.int64()))


def measured(store: Head, survey: Survey) -> Survey:
    """Returns the survey, in which every victim that is there has a size. Nothing is asked where all have one."""
    if not survey.unsized:
        return survey
    with writing_to("the folder for temporary files", _ROOM):
        folder, account = TemporaryDirectory(prefix="firnline-victims-"), _Sizes(Counter())
        with ExitStack() as failed, ThreadPoolExecutor(_THREADS) as pool:
            failed.callback(folder.cleanup)
            _write(folder, (account.filled(batch, store, pool) for batch in survey.victim_batches()))
            failed.pop_all()
    found = ((kind, Tally(0, size)) for kind, size in account.told.items())
    return Measured(survey, folder, Totals.of([*survey.victims.by_kind.items(), *found]), account.missing)


def _write(folder: TemporaryDirectory[str], batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow as pa

    first = next(batches)  # there is one: some victims have no size
    with pa.OSFile(str(_file(folder)), "wb") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch.cast(first.schema))


def _file(folder: TemporaryDirectory[str]) -> Path:
    return Path(folder.name) / "victims.arrow"


def size_of(store: Head, key: str) -> int | None:
    """Returns the size of an object as its store tells it; None if it is gone."""
    try:
        return store.head(key).size
    except ObjectNotFound:
        return None
