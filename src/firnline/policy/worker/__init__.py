"""What firnline.yaml says of the worker: its keys, and the hours in which it works."""
