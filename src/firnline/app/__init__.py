"""The composition root: the only package that names concrete adapters. Everything heavy is imported when needed."""
