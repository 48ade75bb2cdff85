"""The audit log: a chain of entries that is only ever appended to."""
