"""Commands and options that tell of runs."""
