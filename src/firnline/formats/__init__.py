"""The table formats firnline reads and commits to."""
