"""The Arrow form of a listing."""

from __future__ import annotations

import pyarrow as pa

from firnline.ports.listings import LISTED_COLUMNS

LISTED = pa.schema(zip(LISTED_COLUMNS, (pa.string(), pa.int64(), pa.int64(), pa.string()), strict=True))
