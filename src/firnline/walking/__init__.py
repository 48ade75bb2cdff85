"""What both engines compute alike: where a walk of several tables starts, who reaches a file, and the verdict on it."""
