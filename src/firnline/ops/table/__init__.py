"""The table that a use case works on: where it is, its records, its lease and its clock."""
