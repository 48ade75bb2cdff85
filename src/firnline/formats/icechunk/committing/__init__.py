"""Moving a repository on, through the icechunk library: firnline itself writes no object of the format."""
