"""Writing the list of files that would go, as Parquet or CSV, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from firnline.errors import UsageError
from firnline.ports.engines import Survey

if TYPE_CHECKING:
    import pyarrow as pa


def check_listing_name(out: Path) -> None:
    """Returns where the name says a known form; raises before any long work where it does not."""
    if out.suffix not in (".parquet", ".csv"):
        raise UsageError(f"cannot tell the form of {out}", hint="name it OUT.parquet or OUT.csv")
    if not out.parent.is_dir():
        raise UsageError(f"no such folder: {out.parent}", hint="make it first")


def write_listing(survey: Survey | None, out: Path) -> int:
    """Returns the number of files listed in `out` (columns path, kind, size)."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    check_listing_name(out)
    schema = pa.schema([("path", pa.string()), ("kind", pa.string()), ("size", pa.int64())])
    writer = pyarrow.parquet.ParquetWriter if out.suffix == ".parquet" else pyarrow.csv.CSVWriter
    listed = 0
    with writer(out, schema) as sink:
        for batch in _listing(survey, schema):
            sink.write_batch(batch)
            listed += len(batch)
    return listed


def _listing(survey: Survey | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in () if survey is None else survey.victim_batches():
        columns = [batch.column(name) for name in ("key", "kind", "size")]
        yield pa.record_batch(columns, schema=schema)
