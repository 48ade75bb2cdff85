"""What a table remembers of its expired snapshots: written with a run, read as a timeline."""
