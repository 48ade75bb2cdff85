"""Iceberg's own runtime for Spark: what it is called, and what to do where it is missing."""

from __future__ import annotations

RUNTIME = "iceberg-spark-runtime"
PACKAGE = f"org.apache.iceberg:{RUNTIME}-4.1_2.13:1.12.0"
JAR = f"Iceberg's own runtime reads it: set FIRNLINE_SPARK_PACKAGES={PACKAGE}"
