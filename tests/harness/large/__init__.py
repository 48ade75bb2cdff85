"""Large Iceberg tables, written directly: their shapes, the bytes of their manifests, what goes when they expire."""
