"""Icechunk's objects, decoded: their common frame, the buffers inside, and the history of a whole repository."""
