"""Pointers: small files beside a table that name its current metadata, for readers who have no catalog."""
