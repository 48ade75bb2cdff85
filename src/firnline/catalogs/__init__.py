"""Finding tables and moving their pointers: SQL catalogs, tables known by their path, PyIceberg's
configuration.
"""
