"""What is told of runs, and to whom."""
