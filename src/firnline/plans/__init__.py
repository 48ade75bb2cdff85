"""A plan is a value: what was decided, what it frees, and the stages of the run. No I/O."""
