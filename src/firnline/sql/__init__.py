"""Tables as Spark SQL sees them: a data source, and statements that name tables and their metadata."""

from firnline.extras import require

require("spark", "SQL")

ROWS = "rows"
METADATA = (
    "snapshots", "all_snapshots", "entries", "files", "partitions", "manifests", "refs", "history",
    "metadata_log_entries", "runs", "ledger",
)  # fmt: skip
"""What a table has beside its rows."""
LAKE, TOLD_OF_LAKE = "firnline", ("snapshots", "runs")
"""The namespace of what is told of the whole lake, and what that is."""
