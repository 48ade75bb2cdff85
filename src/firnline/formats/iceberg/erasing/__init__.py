"""Manifests and manifest lists without some data files, and the snapshots that name them instead."""
