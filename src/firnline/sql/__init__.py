"""Tables as Spark SQL sees them: a data source, and statements that name tables and their metadata."""
