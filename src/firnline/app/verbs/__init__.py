"""The verbs of a lake that need no query engine, by what they do: looking at tables, and marking them."""
