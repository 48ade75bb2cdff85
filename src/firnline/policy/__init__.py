"""What to keep, and why: rules, Iceberg's own retention, inheritance and the pure function `decide`."""
