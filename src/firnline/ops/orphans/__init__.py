"""Orphans: files in a table's folders, or under a prefix, that no snapshot of any table needs."""
