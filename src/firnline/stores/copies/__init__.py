"""Copies of a table's files in another place, each seen to be whole."""
