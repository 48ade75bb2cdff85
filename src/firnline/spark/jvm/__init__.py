"""The JVM of a Spark session that firnline starts itself: quick to start, and silent while it does."""
