"""Walking a repository: from its snapshots to manifests and chunks, and the folders of all of them."""
