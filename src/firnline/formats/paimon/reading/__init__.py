"""Paimon's metadata files, parsed, up to the State that every other part works on."""
