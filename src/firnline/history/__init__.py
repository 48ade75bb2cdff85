"""The record of expired snapshots: a list that every tool can read, and firnline's own ledger beside it."""
