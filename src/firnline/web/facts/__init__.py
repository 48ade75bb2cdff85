"""What pages and reports show, as values: each figure is one that a command says with `--json`."""
