"""Writing the list of files that would go, as Parquet or CSV, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from firnline.errors import UsageError
from firnline.model.locations import within
from firnline.model.names import refuse_no_text
from firnline.ops.disk_room import writing_to

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("path", "kind", "size")
_ANOTHER = "name another folder"


class HasVictims(Protocol):
    def victim_batches(self) -> Iterator[pa.RecordBatch]: ...


def check_listing_name(out: Path) -> None:
    """Raises UsageError, before any long work, unless a listing can be written under this name.

    A file that is already there is only replaced where it is an earlier listing: any other may be data.
    """
    refuse_no_text(str(out), "the name of a list")
    if out.suffix not in (".parquet", ".csv"):
        raise UsageError(f"cannot tell the form of {out}", hint="name it OUT.parquet or OUT.csv")
    if not out.parent.is_dir():
        raise UsageError(f"no such folder: {out.parent}", hint="make it first")
    if out.exists() and not (out.is_file() and _is_listing(out)):
        raise UsageError(f"{out} is there and is no list of files", hint="name a new file; nothing was overwritten")
    with writing_to(out.parent, _ANOTHER), _beside(out):
        pass


def write_listing(survey: HasVictims | None, out: Path, owned: Iterable[str]) -> int:
    """Returns the number of files listed in `out` (columns path, kind, size), which appears whole or not at all.

    Raises UsageError where `out` lies in a folder that the table owns: there it would look like one of its files.
    """
    check_listing_name(out)
    if any(within(folder, str(out.resolve())) for folder in owned):
        raise UsageError(f"{out} lies inside the table", hint="name a file outside the table's folders")
    with writing_to(out.parent, _ANOTHER), _beside(out) as folder:
        unfinished = Path(folder, out.name)
        listed = _write(survey, unfinished)
        unfinished.replace(out)
    return listed


def _beside(out: Path) -> TemporaryDirectory[str]:
    """Returns a folder that soon goes, on the same disk as `out`."""
    return TemporaryDirectory(dir=out.parent, prefix=".firnline-")


def _is_listing(out: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        if out.suffix == ".parquet":
            return tuple(pyarrow.parquet.read_schema(out).names) == _COLUMNS
        with out.open(encoding="utf-8") as lines:
            return lines.readline(64).strip().replace('"', "") == ",".join(_COLUMNS)
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return False


def _write(survey: HasVictims | None, out: Path) -> int:
    import pyarrow as pa

    schema = pa.schema(zip(_COLUMNS, (pa.string(), pa.string(), pa.int64()), strict=True))
    listed = 0
    with _sink(out, schema) as sink:
        for batch in _listing(survey, schema):
            sink.write_batch(batch)
            listed += len(batch)
    return listed


def _sink(out: Path, schema: pa.Schema) -> Any:
    """Returns what takes batches. No path occurs twice: a dictionary of them would be built and thrown away."""
    if out.suffix == ".csv":
        from pyarrow.csv import CSVWriter

        return CSVWriter(out, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(out, schema, use_dictionary=["kind"])


def _listing(survey: HasVictims | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in () if survey is None else survey.victim_batches():
        columns = [batch.column(name) for name in ("key", "kind", "size")]
        yield pa.record_batch(columns, schema=schema)
