"""Icechunk: repositories of Zarr arrays. What is here reads them and tells what an expiry would do; it changes none."""
