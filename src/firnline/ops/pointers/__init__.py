"""Keeping a table's pointers at what its catalog says: publishing, and the life of files whose table moved on."""
