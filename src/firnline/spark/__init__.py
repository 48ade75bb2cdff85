"""The engine for work of any size: DataFrames in, DataFrames out, no JVM access and no RDDs."""

from firnline.extras import require

require("spark", "work on Spark")
