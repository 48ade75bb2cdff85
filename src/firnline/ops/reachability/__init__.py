"""What a table needs, who needs a file, and what became reachable since a plan."""
