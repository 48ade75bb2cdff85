"""Other tables: what they need of a table's files, and which folders are theirs."""
