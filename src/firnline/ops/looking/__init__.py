"""Looking without changing anything: check, why, doctor, permissions, lists of files."""
