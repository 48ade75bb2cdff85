"""From a snapshot to its files: roots, manifests, and where each file lies."""
