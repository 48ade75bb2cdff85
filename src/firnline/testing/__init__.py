"""What a test of firnline or of a new adapter starts from: suites for the ports, a lake with a history."""
