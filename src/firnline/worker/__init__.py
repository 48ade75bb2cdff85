"""The worker: keeps every table in policy, in its hours and within its budget, for years."""
