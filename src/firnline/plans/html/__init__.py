"""What a notebook shows: the fields that text and JSON are made from, as tables and small charts; no scripts."""
