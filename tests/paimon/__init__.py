"""Paimon's own implementations as the judges of what firnline does to a Paimon table."""
