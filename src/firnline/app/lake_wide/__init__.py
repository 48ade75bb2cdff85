"""What is done to many tables at once: their plans, their runs and their searches."""
