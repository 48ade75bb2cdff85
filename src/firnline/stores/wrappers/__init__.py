"""Stores around a store: each adds or takes away one thing."""
