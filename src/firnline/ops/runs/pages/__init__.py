"""What a person reads of runs: of one by itself, and of several as a table."""
