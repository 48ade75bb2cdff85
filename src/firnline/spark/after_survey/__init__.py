"""What is done on executors with the files of a survey that stayed there."""
