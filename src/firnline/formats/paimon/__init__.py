"""Apache Paimon: snapshot folders, manifests that add and remove, tags, branches, consumers and changelogs."""
