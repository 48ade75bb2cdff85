"""Copies on executors."""
