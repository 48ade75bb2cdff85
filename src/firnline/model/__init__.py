"""The nouns: snapshots, refs, holds, files, times and locations. Values only; no I/O."""
