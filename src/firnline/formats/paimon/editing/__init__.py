"""Pure edits of a table's metadata files: expiry, restore, tags, options."""
