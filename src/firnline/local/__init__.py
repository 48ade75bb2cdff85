"""The engine for work that fits one machine: threads that open units, and one Arrow aggregation."""
