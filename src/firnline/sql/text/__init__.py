"""What a text of statements says: nothing here needs Spark."""
