"""Streaming readers: what their checkpoints say that they still need."""
