"""Erasing data files from all of a table's history: found, planned, committed, and gone from bundles too."""
