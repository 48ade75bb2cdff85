"""Files of a tier that lie together in bundles: one object for many of them, and an index that tells where each is."""
