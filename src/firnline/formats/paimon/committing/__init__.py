"""Carrying out an edit file by file, since Paimon has no compare-and-swap."""
