"""A run on a table: planned, recorded, committed, purged or undone; and carried on from wherever it stands."""
