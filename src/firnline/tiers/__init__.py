"""Colder storage for history: where a file of a live table lies in a tier."""
