"""Marks on a table that say what must stay: tags, holds, and retention written for other engines."""
