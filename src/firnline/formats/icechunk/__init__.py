"""Icechunk: repositories of Zarr arrays. What is here reads them; nothing of a repository is changed."""
