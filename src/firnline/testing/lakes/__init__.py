"""Several tables at once: what engines must do with them, and lakes to try it on."""
