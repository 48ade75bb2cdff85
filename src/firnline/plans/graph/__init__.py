"""The graph of a table's snapshots before and after a run: its facts, how it is folded, and its text."""
