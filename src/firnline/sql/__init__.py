"""Tables as Spark SQL sees them: a data source, and statements that name tables and their metadata."""

from firnline.extras import require

require("spark", "SQL")
