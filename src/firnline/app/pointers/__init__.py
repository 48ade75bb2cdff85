"""Pointers of the lake's tables: who publishes them, and when."""
