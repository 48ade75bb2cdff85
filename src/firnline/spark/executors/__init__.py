"""The Python of executors: what it lacks is sent to it, and what each task of it does first."""
