"""Iceberg's own Java library as the judge of what a plan says."""
