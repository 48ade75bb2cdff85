"""One use case per file. Each takes ports, never adapters."""
