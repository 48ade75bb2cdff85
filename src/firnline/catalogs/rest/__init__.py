"""Catalogs behind Iceberg's REST protocol: a small client of firnline's own."""
